"""The nodes of the algebra. Expressions inside them are sqlglot trees, which nobody changes in place.

A column in an expression is qualified by the alias of the scan it comes from; above a `Group` it is named by
the group's output and has no qualifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from viewkeeper.sql.binding import Input


@dataclass(frozen=True)
class Item:
    """An expression and the name of the column it makes."""

    name: str
    expression: exp.Expr

    def __str__(self) -> str:
        return f"{sql_of(self.expression)} AS {self.name}"


@dataclass(frozen=True)
class Scan:
    """A table or view of the warehouse under the alias that expressions use."""

    alias: str
    input: Input

    def __str__(self) -> str:
        return f"scan {self.input.name} as {self.alias}"


@dataclass(frozen=True)
class InnerJoin:
    """The product of the scans, filtered by every condition. One scan with conditions is a filter."""

    scans: tuple[Scan, ...]
    conditions: tuple[exp.Expr, ...]

    def __str__(self) -> str:
        return f"join where {' and '.join(map(sql_of, self.conditions)) or 'true'}"


@dataclass(frozen=True)
class Group:
    """One row for each combination of the keys' values; without keys, one row in any case."""

    source: InnerJoin
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.aggregates)) or "nothing"
        return f"group by {', '.join(map(str, self.keys)) or 'nothing'}: {shown}"


@dataclass(frozen=True)
class Project:
    """The columns of the query, in order."""

    source: InnerJoin | Group
    items: tuple[Item, ...]
    having: exp.Expr | None = None

    def __str__(self) -> str:
        having = f" having {sql_of(self.having)}" if self.having is not None else ""
        return f"project {', '.join(map(str, self.items))}{having}"


Node: TypeAlias = Scan | InnerJoin | Group | Project


def sql_of(expression: exp.Expr) -> str:
    return expression.sql(dialect="spark")


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Scan():
            return ()
        case InnerJoin(scans):
            return scans
        case Group(source) | Project(source):
            return (source,)


def tree_text(node: Node, depth: int = 0) -> str:
    """The tree as indented lines, the same for the same tree."""
    lines = [f"{'  ' * depth}{node}"]
    return "\n".join([*lines, *(tree_text(child, depth + 1) for child in children(node))])


def aliases_in(expression: exp.Expr) -> frozenset[str]:
    """The scans that an expression reads."""
    return frozenset(column.table for column in expression.find_all(exp.Column) if column.table)
