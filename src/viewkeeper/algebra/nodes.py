"""The nodes of the algebra: a small closed set, immutable, compared by value.

There are two kinds. A *relation* has columns that are qualified by an alias: a scan, a query under an alias, joins of
these. Every alias stands for one thing in the whole tree. A *query* has columns with plain names: a projection, a set
operation, the first rows of an order. Expressions are sqlglot trees, which nobody changes in place; above a `Group` or
a `Window` an expression names their outputs without a qualifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import render

Attribute: TypeAlias = tuple[str, str]
"""An alias and a column under it."""


@dataclass(frozen=True)
class Item:
    """An expression and the name of the column it makes."""

    name: str
    expression: exp.Expr

    def __str__(self) -> str:
        return f"{sql_of(self.expression)} AS {self.name}"


# -- relations


@dataclass(frozen=True)
class Scan:
    """A table or view of the warehouse under the alias that expressions use."""

    alias: str
    input: Input

    def __str__(self) -> str:
        return f"scan {self.input.name} as {self.alias}"


@dataclass(frozen=True)
class Derived:
    """A query under an alias."""

    alias: str
    query: Query

    def __str__(self) -> str:
        return f"query as {self.alias}"


@dataclass(frozen=True)
class Constant:
    """Rows that are written in the query itself."""

    alias: str
    columns: tuple[str, ...]
    rows: exp.Values

    def __str__(self) -> str:
        return f"values {', '.join(map(sql_of, self.rows.expressions))} as {self.alias}"


@dataclass(frozen=True)
class InnerJoin:
    """The product of the sources, filtered by every condition. One source with conditions is a filter."""

    sources: tuple[Relation, ...]
    conditions: tuple[exp.Expr, ...]

    def __str__(self) -> str:
        return f"join where {_all(self.conditions)}"


@dataclass(frozen=True)
class OuterJoin:
    """Every row of the left side with its partners, or with NULLs if it has none; FULL: of the right side too."""

    left: Relation
    right: Relation
    conditions: tuple[exp.Expr, ...]
    is_full: bool = False

    def __str__(self) -> str:
        return f"{'full' if self.is_full else 'left'} join on {_all(self.conditions)}"


@dataclass(frozen=True)
class SemiJoin:
    """The rows of the left side that have a partner, or none (`is_anti`). `origin` is the predicate it came from,
    for instance NOT IN: whoever reasons about the query needs to know how NULLs were meant."""

    left: Relation
    right: Relation
    conditions: tuple[exp.Expr, ...]
    is_anti: bool
    origin: str

    def __str__(self) -> str:
        return f"{'anti' if self.is_anti else 'semi'} join ({self.origin}) on {_all(self.conditions)}"


@dataclass(frozen=True)
class Generate:
    """Each row of the source with every row that a function makes of it: LATERAL VIEW."""

    source: Relation
    function: exp.Expr
    alias: str
    columns: tuple[str, ...]
    is_outer: bool = False

    def __str__(self) -> str:
        outer = "outer " if self.is_outer else ""
        return f"{outer}generate {sql_of(self.function)} as {self.alias} ({', '.join(self.columns)})"


# -- queries


@dataclass(frozen=True)
class Group:
    """One row for each combination of the keys' values; without keys, one row in any case."""

    source: Relation
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.aggregates)) or "nothing"
        return f"group by {', '.join(map(str, self.keys)) or 'nothing'}: {shown}"


@dataclass(frozen=True)
class Window:
    """Each row of the source with the values of window functions. `partition` are expressions by which every one of
    them is partitioned: rows that differ there do not meet."""

    source: Relation
    functions: tuple[Item, ...]
    partition: tuple[exp.Expr, ...]

    def __str__(self) -> str:
        return f"window {', '.join(map(str, self.functions))}"


@dataclass(frozen=True)
class Project:
    """The columns of a query, in order; `having` filters groups and rows with window functions."""

    source: Relation | Group | Window
    items: tuple[Item, ...]
    having: exp.Expr | None = None

    def __str__(self) -> str:
        having = f" having {sql_of(self.having)}" if self.having is not None else ""
        return f"project {', '.join(map(str, self.items))}{having}"


class SetKind(Enum):
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True)
class SetOperation:
    """Columns correspond by position and are named as on the left. A UNION without ALL is a group over one with."""

    kind: SetKind
    is_all: bool
    left: Query
    right: Query

    def __str__(self) -> str:
        return f"{self.kind.value}{' all' if self.is_all else ''}"


@dataclass(frozen=True)
class TopRows:
    """The first rows of a query in an order. The order is made total by all columns of the query, so that ties are
    always broken in the same way."""

    query: Query
    order: tuple[exp.Expr, ...]
    limit: int | None
    offset: int = 0

    def __str__(self) -> str:
        limit = "" if self.limit is None else f" limit {self.limit}"
        offset = f" offset {self.offset}" if self.offset else ""
        return f"top{limit}{offset} by {', '.join(map(sql_of, self.order)) or 'all columns'}"


Relation: TypeAlias = Scan | Derived | Constant | InnerJoin | OuterJoin | SemiJoin | Generate
Query: TypeAlias = Project | SetOperation | TopRows
Node: TypeAlias = Relation | Group | Window | Query


def inner_join(sources: Sequence[Relation], conditions: Sequence[exp.Expr]) -> Relation:
    """The sources joined; joins among them become part of it, and one source without conditions stays as it is."""
    flat: list[Relation] = []
    inner: list[exp.Expr] = []
    for source in sources:
        flat += source.sources if isinstance(source, InnerJoin) else [source]
        inner += source.conditions if isinstance(source, InnerJoin) else ()
    if len(flat) == 1 and not inner and not conditions:
        return flat[0]
    return InnerJoin(tuple(flat), (*inner, *conditions))


def sql_of(expression: exp.Expr) -> str:
    return render(expression.copy(), pretty=False)


def _all(conditions: tuple[exp.Expr, ...]) -> str:
    return " and ".join(map(sql_of, conditions)) or "true"


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Scan() | Constant():
            return ()
        case InnerJoin(sources):
            return sources
        case OuterJoin(left, right) | SemiJoin(left, right):
            return (left, right)
        case SetOperation(_, _, one, other):
            return (one, other)
        case Derived(_, query) | TopRows(query):
            return (query,)
        case Generate(source) | Group(source) | Window(source) | Project(source):
            return (source,)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def scans(node: Node) -> list[Scan]:
    return [each for each in walk(node) if isinstance(each, Scan)]


def tree_text(node: Node, depth: int = 0) -> str:
    """The tree as indented lines, the same for the same tree."""
    lines = [f"{'  ' * depth}{node}"]
    return "\n".join([*lines, *(tree_text(child, depth + 1) for child in children(node))])


def expressions(node: Node) -> tuple[exp.Expr, ...]:
    """The expressions that stand in the node itself."""
    match node:
        case Scan() | Derived() | Constant() | SetOperation() | TopRows():
            return ()
        case InnerJoin(_, conditions) | OuterJoin(_, _, conditions) | SemiJoin(_, _, conditions):
            return conditions
        case Generate(_, function):
            return (function,)
        case Group(_, keys, aggregates):
            return tuple(item.expression for item in (*keys, *aggregates))
        case Window(_, functions, partition):
            return (*(item.expression for item in functions), *partition)
        case Project(_, items, having):
            return (*(item.expression for item in items), *([] if having is None else [having]))


def output_names(query: Query) -> tuple[str, ...]:
    match query:
        case Project(_, items):
            return tuple(item.name for item in items)
        case SetOperation(_, _, left):
            return output_names(left)
        case TopRows(inner):
            return output_names(inner)


def aliases_of(relation: Relation) -> frozenset[str]:
    """The aliases under which a relation has columns."""
    match relation:
        case Scan(alias) | Derived(alias) | Constant(alias):
            return frozenset({alias})
        case InnerJoin(sources):
            return frozenset().union(*(aliases_of(source) for source in sources))
        case OuterJoin(left, right):
            return aliases_of(left) | aliases_of(right)
        case SemiJoin(left):
            return aliases_of(left)
        case Generate(source, _, alias):
            return aliases_of(source) | {alias}


def aliases_in(expression: exp.Expr) -> frozenset[str]:
    """The aliases that an expression reads."""
    return frozenset(column.table for column in expression.find_all(exp.Column) if column.table)


def attributes_in(node: Node) -> frozenset[Attribute]:
    """All qualified columns that expressions in the tree read."""
    return frozenset(
        (column.table, column.name)
        for each in walk(node)
        for expression in expressions(each)
        for column in expression.find_all(exp.Column)
        if column.table
    )
