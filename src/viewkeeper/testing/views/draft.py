"""What a random view is written with: chance, tables, names, and a record of the constructs that were used."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from viewkeeper.sql.types import DataType, Simple
from viewkeeper.testing.tables import Schema, Table

T = TypeVar("T")

_CONSTRUCTS = {
    "joins": "inner join, left join, right join, full join, cross join, comma join, semi join, anti join, "
    "self-join, join using, non-equi join, one-sided on, or in on, constant on",
    "conditions": "where, or, not, null-safe equality, is null, in list, between, like, boolean column",
    "expressions": "case, coalesce, arithmetic, string function, date function, star",
    "groups": "group by, one group, group by expression, hidden group key, having, filter clause, "
    "aggregate in expression, division, rollup, cube, grouping sets, grouping",
    "aggregates": "count, count distinct, sum, sum distinct, avg, min, max, stddev, covariance, corr, "
    "bool_and, bool_or, bit_and, bit_or, bit_xor, first, last, any_value, max_by, min_by, collect_list, "
    "collect_set, listagg",
    "sets": "distinct, union, union all, intersect, intersect all, except, except all, three operands",
    "windows": "rank, dense_rank, row_number, lag, first_value, window sum, window count, window min, "
    "window frame, window over all, first of each, qualify, named window",
    "order": "limit, offset",
    "sources": "values, cte, cte used twice, subquery in from, explode array, explode sequence, pivot, unpivot",
    "subqueries": "scalar subquery, correlated scalar subquery, exists, not exists, in subquery, not in subquery, "
    "correlated in, non-equi correlation, subquery in select list, subquery under or, subquery under not, "
    "subquery in case, subquery in having, grouped subquery",
}
CONSTRUCTS = frozenset(name for names in _CONSTRUCTS.values() for name in names.split(", "))
"""Every construct that random views are made of."""

INTEGER, DECIMAL, STRING, DATE, BOOLEAN, DOUBLE = "integer", "decimal", "string", "date", "boolean", "double"
EXACT = (INTEGER, DECIMAL, STRING, DATE, BOOLEAN)
"""Kinds whose values can be grouped, ordered and put into sets: no rounding decides."""


def kind_of(data_type: DataType) -> str:
    name = data_type.name if isinstance(data_type, Simple) else ""
    kinds = {"INT": INTEGER, "BIGINT": INTEGER, "STRING": STRING, "DATE": DATE, "BOOLEAN": BOOLEAN}
    return DECIMAL if name.startswith("DECIMAL") else kinds.get(name, DOUBLE)


@dataclass(frozen=True)
class Term:
    """A column that is in sight, or an expression.

    `is_stored`: a column of a table as it is; only with these is calculated, since types of results differ between
    engines. `is_int`: of the type INT.
    """

    sql: str
    kind: str
    is_stored: bool = False
    is_int: bool = False

    @property
    def is_exact(self) -> bool:
        return self.kind in EXACT


@dataclass(frozen=True)
class Column:
    """A column of a query's result, by its name there."""

    name: str
    kind: str
    is_stored: bool = False
    is_int: bool = False

    def of(self, alias: str) -> Term:
        return Term(f"{alias}.{self.name}", self.kind, self.is_stored, self.is_int)


@dataclass(frozen=True)
class Query:
    sql: str
    columns: tuple[Column, ...]

    @property
    def is_exact(self) -> bool:
        return all(column.kind in EXACT for column in self.columns)


def columns_of(table: Table) -> tuple[Column, ...]:
    return tuple(
        Column(each.name, kind_of(each.data_type), True, each.data_type == Simple("INT"))
        for each in table.columns
    )


@dataclass
class Draft:
    generator: random.Random
    schema: Schema
    subquery: Callable[[Draft, int], Query]
    """Writes a query that is nested so deep at most."""
    may_fail: bool = False
    """Whether the view may fail on some rows."""
    constructs: set[str] = field(default_factory=set)
    common: list[tuple[str, Query]] = field(default_factory=list)
    """The common table expressions, by their names."""
    _names: int = 0

    def uses(self, *constructs: str) -> None:
        assert CONSTRUCTS.issuperset(constructs), constructs
        self.constructs.update(constructs)

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def chance(self, probability: float) -> bool:
        return self.generator.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return self.generator.choice(options)

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """As many different ones of the options, if there are."""
        most = min(most, len(options))
        return self.generator.sample(options, self.generator.randint(min(least, most), most))

    def table(self) -> Table:
        return self.pick(self.schema.tables)


def of_kind(terms: Sequence[Term], kind: str) -> list[Term]:
    return [term for term in terms if term.kind == kind]


def exact(terms: Sequence[Term]) -> list[Term]:
    return [term for term in terms if term.is_exact]
