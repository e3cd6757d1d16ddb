"""Runs maintenance plans on DuckDB: the same steps, the same SQL, another engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import duckdb

from viewkeeper.generated_names import COPY_NUMBER
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    CheckConstraint,
    Derive,
    LoadRows,
    MaintenancePlan,
    Read,
    State,
    WriteChangeSet,
)
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.script import parse_sql

Row: TypeAlias = tuple[Any, ...]


def to_duckdb(spark_sql: str) -> str:
    return (
        parse_sql(spark_sql)
        .sql(dialect="duckdb")
        .replace("LEFT SEMI JOIN", "SEMI JOIN")
        .replace("LEFT ANTI JOIN", "ANTI JOIN")
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class TableState:
    """The rows of a table before and after, and its key if it has one that counts."""

    input: Input
    old: list[Row]
    new: list[Row]
    key: tuple[str, ...] = ()

    def parts(self) -> dict[State, list[Row]]:
        """The change set: by key in four kinds, without a key as a signed bag."""
        if not self.key:
            removed = list((Counter(self.old) - Counter(self.new)).elements())
            added = list((Counter(self.new) - Counter(self.old)).elements())
            return {State.REMOVED: removed, State.ADDED: added}
        at = [i for i, c in enumerate(self.input.columns) if c.name in self.key]
        old = {tuple(row[i] for i in at): row for row in self.old}
        new = {tuple(row[i] for i in at): row for row in self.new}
        both = [k for k in old if k in new and old[k] != new[k]]
        return {
            State.DELETED: [row for k, row in old.items() if k not in new],
            State.INSERTED: [row for k, row in new.items() if k not in old],
            State.OLD_UPDATED: [old[k] for k in both],
            State.NEW_UPDATED: [new[k] for k in both],
        }

    def kinds(self) -> frozenset[State]:
        return frozenset(part for part, rows in self.parts().items() if rows)

    def rows(self, state: State) -> list[Row]:
        if state is State.OLD:
            return self.old
        if state is State.NEW:
            return self.new
        if state is State.BETWEEN:
            kept = Counter(self.old) - Counter(self.parts()[State.DELETED] + self.parts()[State.OLD_UPDATED])
            return list(kept.elements())
        parts = self.parts()
        if state in parts:
            return parts[state]
        if state is State.ADDED:
            return parts[State.INSERTED] + parts[State.NEW_UPDATED]
        return parts[State.DELETED] + parts[State.OLD_UPDATED]


@dataclass
class DuckDbRun:
    database: duckdb.DuckDBPyConnection
    tables: Mapping[str, TableState]
    view: ViewDefinition
    rows: list[Row] = field(default_factory=list)
    change_set: list[Row] = field(default_factory=list)
    violations: list[Row] = field(default_factory=list)

    def run(self, plan: MaintenancePlan) -> None:
        stored = [*self.view.stored, Column(COPY_NUMBER, parse_type("INT"))]
        for step in plan.steps:
            for read in step.reads:
                self._register(read)
            match step:
                case Derive():
                    self.database.execute(
                        f"CREATE OR REPLACE TEMP TABLE {quoted(step.relation)} AS {to_duckdb(step.sql)}"
                    )
                case CheckConstraint():
                    self.violations += self.database.execute(to_duckdb(step.sql)).fetchall()
                case LoadRows():
                    self.rows = self.database.execute(to_duckdb(step.sql)).fetchall()
                case WriteChangeSet():
                    self.change_set = self.database.execute(to_duckdb(step.sql)).fetchall()
                case ApplyChangeSet():
                    self._fill(step.target, stored, self.rows)
                    kind = Column("_vk_change", parse_type("STRING"))
                    self._fill(step.changes, [*stored, kind], self.change_set)
                    self.database.execute(to_duckdb(step.sql))
                    self.rows = self.database.execute(f"SELECT * FROM {quoted(step.target)}").fetchall()

    def visible(self) -> Counter[Row]:
        return Counter(row[: len(self.view.columns)] for row in self.rows)

    def _register(self, read: Read) -> None:
        if read.object_id == self.view.id:
            width = len(self.view.stored)
            self._fill(read.relation, self.view.stored, [row[:width] for row in self.rows])
            return
        state = self.tables[read.object_id]
        rows = state.rows(read.state)
        if read.limit is not None:
            other = self.tables[read.limit.object_id]
            of = [c.name for c in other.input.columns].index(read.limit.of_column)
            wanted = {row[of] for row in other.rows(read.limit.state)}
            own = [c.name for c in state.input.columns].index(read.limit.column)
            rows = [row for row in rows if row[own] in wanted]
        self._fill(read.relation, state.input.columns, rows)

    def _fill(self, relation: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        shape = ", ".join(f"{quoted(c.name)} {to_duckdb_type(c)}" for c in columns)
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(relation)} ({shape})")
        if rows:
            places = f"({', '.join('?' for _ in columns)})"
            self.database.execute(
                f"INSERT INTO {quoted(relation)} VALUES {', '.join([places] * len(rows))}",
                [value for row in rows for value in row],
            )


def parse_type(text: str) -> Any:
    from viewkeeper.sql.types import read_type_text

    return read_type_text(text)


def to_duckdb_type(column: Column) -> str:
    text = str(column.data_type)
    return {"STRING": "VARCHAR"}.get(text, text)
