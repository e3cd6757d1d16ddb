"""Runs maintenance plans on DuckDB: the same steps, the same SQL, another engine.

A limit of a read is applied here, so that one which would change the answer does.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import duckdb
from sqlglot import exp, parse_one
from typing_extensions import assert_never

from viewkeeper.algebra.reading.values import with_not_inside
from viewkeeper.generated_names import COPY_NUMBER
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    CheckConstraint,
    Derive,
    Limit,
    LoadRows,
    MaintenancePlan,
    Read,
    State,
    Step,
    WriteChangeSet,
)
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column
from viewkeeper.sql.dialect import transpile
from viewkeeper.sql.rendering import call, render
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.types import DataType, Simple, read_type_text
from viewkeeper.testing.bags import Row
from viewkeeper.testing.values import NOT_NUMBERS


@lru_cache(maxsize=512)
def to_duckdb(spark_sql: str) -> str:
    """
    >>> to_duckdb("SELECT `a` <=> 1 FROM t LEFT SEMI JOIN u ON t.a = u.a")
    'SELECT "a" IS NOT DISTINCT FROM 1 FROM t SEMI JOIN u ON t.a = u.a'
    """
    written = (
        transpile(with_sparks_in(spark_sql), "duckdb")
        .replace("LEFT SEMI JOIN", "SEMI JOIN")
        .replace("LEFT ANTI JOIN", "ANTI JOIN")
        .replace("RAISE_ERROR(", "ERROR(")
    )
    return _failing_by_zero(written) if _DIVISION.search(written) else written


_DIVISION = re.compile(r"/ NULLIF\((?!CAST\(|SQRT\()")
"""A division that a view writes. Those of averages and moments are by a CAST or SQRT: they ask for the count first, and where Spark's
CORR divides by zero, DuckDB's is NaN."""


def _failing_by_zero(sql: str) -> str:
    """Division as ANSI SQL has it: by zero it is an error. sqlglot writes it so that it is NULL on DuckDB."""
    tree = parse_one(sql, dialect="duckdb")
    for found in list(tree.find_all(exp.Div)):
        if isinstance(found.expression, exp.Nullif):
            below = found.expression.this
            if not isinstance(below, (exp.Cast, exp.Sqrt)):
                is_zero = exp.EQ(this=below.copy(), expression=exp.Literal.number(0))
                failure = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string("division by zero")])
                found.set(
                    "expression", exp.Case(ifs=[exp.If(this=is_zero, true=failure)], default=below.copy())
                )
    return tree.sql(dialect="duckdb")


def with_sparks_in(spark_sql: str) -> str:
    """The query with IN and NOT IN over subqueries as Spark means them: what is unknown is false.

    >>> with_sparks_in("SELECT 1 FROM t")
    'SELECT 1 FROM t'
    >>> print(" ".join(with_sparks_in("SELECT NOT a IN (SELECT b FROM u) AS f FROM t").split()))
    SELECT COALESCE(( NOT a IN ( SELECT b FROM u ) ), FALSE) AS f FROM t
    """
    if not re.search(r"\bIN\s*\(\s*(SELECT|WITH|\()", spark_sql, re.IGNORECASE):
        return spark_sql
    tree = with_not_inside(parse_sql(spark_sql))
    for found in [each for each in tree.find_all(exp.In) if each.args.get("query") is not None]:
        place: exp.Expr = found
        while isinstance(place.parent, exp.Paren):
            place = place.parent
        if isinstance(place.parent, exp.Not):
            place = place.parent
        place.replace(call("COALESCE", exp.paren(place.copy()), exp.false()))
    return render(tree)


@lru_cache(maxsize=512)
def to_duckdb_type(data_type: DataType) -> str:
    return exp.DataType.build(str(data_type), dialect="spark").sql(dialect="duckdb")


@lru_cache(maxsize=512)
def from_duckdb_type(text: str) -> DataType:
    """The type that Spark gives what DuckDB gives this type: sums are narrower there, but for those of whole numbers."""
    text = re.sub(r"\b(HUGEINT|UBIGINT|UHUGEINT)\b", "BIGINT", text)
    if text.startswith("DECIMAL(38,") and text != "DECIMAL(38,0)":
        return Simple(f"DECIMAL(20,{text.removeprefix('DECIMAL(38,')}")
    if text == "TIMESTAMP":
        return Simple("TIMESTAMP_NTZ")
    return read_type_text(exp.DataType.build(text, dialect="duckdb").sql(dialect="spark"))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(
    database: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[Column], rows: Sequence[Row]
) -> None:
    """Make a temporary table of these rows, in one statement."""
    database.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(relation)} AS {rows_as_sql(columns, rows)}")


def rows_as_sql(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """The first row gives the types."""
    first = rows[0] if rows else (None,) * len(columns)
    typed = [
        f"CAST({_literal(value)} AS {to_duckdb_type(column.data_type)})"
        for value, column in zip(first, columns, strict=True)
    ]
    shown = [f"({', '.join(typed)})", *(f"({', '.join(map(_literal, row))})" for row in rows[1:])]
    names = ", ".join(quoted(column.name) for column in columns)
    where = "" if rows else " WHERE FALSE"
    return f"SELECT * FROM (VALUES {', '.join(shown)}) AS filled({names}){where}"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case datetime.datetime():
            return f"TIMESTAMP '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case bytes():
            return f"from_hex('{value.hex()}')"
        case dict():
            return f"{{{', '.join(f'{_literal(name)}: {_literal(each)}' for name, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


class StructValue(dict[str, Any]):
    """A struct that can be counted: nobody changes it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class ListValue(list[Any]):
    """A list that can be counted: nobody changes it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def _counted(value: Any) -> Any:
    match value:
        case dict():
            return StructValue({name: _counted(each) for name, each in value.items()})
        case list():
            return ListValue(map(_counted, value))
        case float() if value != value:
            return _NAN
        case _:
            return value


_NAN = NOT_NUMBERS[0]
"""As an object it equals itself, so that rows with it can be counted."""


@dataclass(frozen=True)
class TableState:
    """The rows of a table before and after, and its key if its changes come by key."""

    columns: tuple[Column, ...]
    old: Sequence[Row]
    new: Sequence[Row]
    key: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> Mapping[State, Sequence[Row]]:
        """The change set: by key in four kinds, without a key as a signed bag."""
        removed = list((Counter(self.old) - Counter(self.new)).elements())
        added = list((Counter(self.new) - Counter(self.old)).elements())
        if not self.key:
            return {State.REMOVED: removed, State.ADDED: added}
        parts: dict[State, list[Row]] = {
            part: [] for part in (State.DELETED, State.INSERTED, State.OLD_UPDATED, State.NEW_UPDATED)
        }
        lost, gained = self._by_key(removed), self._by_key(added)
        for key in dict.fromkeys([*lost, *gained]):
            is_update = len(lost[key]) == len(gained[key]) == 1
            parts[State.OLD_UPDATED if is_update else State.DELETED] += lost[key]
            parts[State.NEW_UPDATED if is_update else State.INSERTED] += gained[key]
        return parts

    def _by_key(self, rows: Sequence[Row]) -> defaultdict[Row, list[Row]]:
        places = [at for at, column in enumerate(self.columns) if column.name in self.key]
        found: defaultdict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            found[tuple(row[at] for at in places)].append(row)
        return found

    @cached_property
    def kinds(self) -> frozenset[State]:
        return frozenset(part for part, rows in self.parts.items() if rows)

    def rows(self, state: State) -> Sequence[Row]:
        match state:
            case State.OLD:
                return self.old
            case State.NEW:
                return self.new
            case State.BETWEEN:
                gone = [*self.parts[State.DELETED], *self.parts[State.OLD_UPDATED]]
                return list((Counter(self.old) - Counter(gone)).elements())
            case State.ADDED if self.key:
                return [*self.parts[State.INSERTED], *self.parts[State.NEW_UPDATED]]
            case State.REMOVED if self.key:
                return [*self.parts[State.DELETED], *self.parts[State.OLD_UPDATED]]
            case _:
                return self.parts[state]


class InexactChangeSet(Exception):
    """A change set that deletes what is not there, or inserts what is there already."""


class DuckDbRun:
    """One view, in temporary tables of one connection: loaded, then brought up to date plan by plan.

    What a step reads stands before its SQL as a common table expression: that is cheaper than a table.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, view: ViewDefinition) -> None:
        self.view = view
        self.violations: list[Row] = []
        self._database = database
        self._tables: Mapping[str, TableState] = {}
        self._reads: dict[str, Read] = {}
        self._definitions: dict[str, str] = {}
        self._rows: dict[str, _Rows] = {}
        self._stored = 0

    def run(self, plan: MaintenancePlan, tables: Mapping[str, TableState]) -> None:
        """Run a plan over these states of the view's inputs. What checks find is added to `violations`."""
        self._tables, self._reads, self._definitions, self._rows = tables, {}, {}, {}
        for step in plan.steps:
            for read in step.reads:
                self._register(read)
            if self._run_step(step) == 0 and isinstance(step, Derive) and step.ends_if_empty:
                return

    def visible(self) -> list[Row]:
        """The view's rows as users see them."""
        names = ", ".join(quoted(column.name) for column in self.view.columns)
        found = self._database.execute(f"SELECT {names} FROM {quoted(self.view.stem)}").fetchall()
        return [tuple(map(_counted, row)) for row in found]

    def _run_step(self, step: Step) -> int:
        """Run one step and return how many rows it found or changed."""
        sql = self._with_reads(to_duckdb(step.sql))
        match step:
            case Derive():
                return self._create(step.relation, sql)
            case CheckConstraint():
                found = self._database.execute(sql).fetchall()
                self.violations += found
                return len(found)
            case LoadRows():
                stored = (*self.view.stored, Column(COPY_NUMBER, Simple("INT")))
                shape = ", ".join(f"{quoted(c.name)} {to_duckdb_type(c.data_type)}" for c in stored)
                target = quoted(self.view.stem)
                self._database.execute(f"CREATE OR REPLACE TEMP TABLE {target} ({shape})")
                return self._count(f"INSERT INTO {target} {sql}")
            case WriteChangeSet():
                self._stored = self._create(_CHANGE_SET, sql)
                return self._stored
            case ApplyChangeSet():
                applied = self._count(sql.replace(quoted(step.changes), quoted(_CHANGE_SET)))
                if applied != self._stored and not self.violations:
                    raise InexactChangeSet(f"{self._stored} changes are stored, {applied} can be applied")
                return applied
            case _:
                assert_never(step)

    def _create(self, relation: str, sql: str) -> int:
        return self._count(f"CREATE OR REPLACE TEMP TABLE {quoted(relation)} AS {sql}")

    def _count(self, sql: str) -> int:
        return int(self._database.execute(sql).fetchall()[0][0])

    def _with_reads(self, sql: str) -> str:
        used = [name for name in self._definitions if quoted(name) in sql]
        if not used:
            return sql
        reads = ", ".join(f"{quoted(name)} AS ({self._definitions[name]})" for name in used)
        return f"WITH {reads}, {sql[5:]}" if sql.startswith("WITH ") else f"WITH {reads} {sql}"

    def _register(self, read: Read) -> None:
        """Give a read its rows, unless it has them from an earlier step."""
        known = self._reads.setdefault(read.relation, read)
        if known != read:
            raise AssertionError(f"one name for two reads: {read} and {known}")
        if read.relation in self._definitions:
            return
        columns, rows = self._found(read)
        if read.limit is not None:
            for name, of_name in zip(read.limit.columns, read.limit.of_columns, strict=True):
                at = [column.name.lower() for column in columns].index(name.lower())
                wanted = self._wanted(read.limit, of_name)
                rows = [row for row in rows if row[at] in wanted]
        self._rows[read.relation] = (columns, rows)
        self._definitions[read.relation] = rows_as_sql(columns, rows)

    def _found(self, read: Read) -> _Rows:
        if read.object_id != self.view.id:
            table = self._tables[read.object_id]
            # No engine promises an order: a sum of DOUBLE has other bits when it is computed again.
            rows = table.rows(read.state)
            return table.columns, rows[::-1] if read.state is State.OLD else rows
        names = ", ".join(quoted(column.name) for column in self.view.stored)
        found = self._database.execute(f"SELECT {names} FROM {quoted(self.view.stem)}").fetchall()
        return self.view.stored, [tuple(map(_counted, row)) for row in found]

    def _wanted(self, limit: Limit, of_column: str) -> set[Any]:
        """The values that a limit lets through in one of its columns."""
        nulls = {None} if limit.keeps_nulls else set()
        if limit.relation in self._rows:
            columns, rows = self._rows[limit.relation]
            at = [column.name.lower() for column in columns].index(of_column.lower())
            values = {row[at] for row in rows}
        else:
            values = self._values(limit.relation, of_column)
        return (values - {None}) | nulls

    def _values(self, relation: str, column: str) -> set[Any]:
        found = self._database.execute(f"SELECT DISTINCT {quoted(column)} FROM {quoted(relation)}")
        return {_counted(value) for (value,) in found.fetchall()}


_Rows: TypeAlias = tuple[Sequence[Column], Sequence[Row]]
_CHANGE_SET = "_vk_change_set"
