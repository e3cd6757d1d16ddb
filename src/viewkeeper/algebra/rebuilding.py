"""A tree again with other expressions and aliases, otherwise the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Constant,
    Derived,
    Generate,
    Group,
    InnerJoin,
    Item,
    OuterJoin,
    Project,
    Query,
    Relation,
    Scan,
    SemiJoin,
    SetOperation,
    TopRows,
    Window,
)


def _same(alias: str) -> str:
    return alias


@dataclass(frozen=True)
class Rebuilding:
    """What each expression and each alias becomes."""

    expression: Callable[[exp.Expr], exp.Expr]
    alias: Callable[[str], str] = _same

    def relation(self, relation: Relation) -> Relation:
        match relation:
            case Scan(alias) | Constant(alias):
                return replace(relation, alias=self.alias(alias))
            case Derived(alias, query):
                return Derived(self.alias(alias), self.query(query))
            case InnerJoin(sources, conditions):
                return InnerJoin(tuple(map(self.relation, sources)), self._all(conditions))
            case OuterJoin(left, right, conditions) | SemiJoin(left, right, conditions):
                return replace(
                    relation,
                    left=self.relation(left),
                    right=self.relation(right),
                    conditions=self._all(conditions),
                )
            case Generate(source, function, alias):
                return replace(
                    relation,
                    source=self.relation(source),
                    function=self.expression(function),
                    alias=self.alias(alias),
                )

    def query(self, query: Query) -> Query:
        match query:
            case Project():
                return self.project(query)
            case SetOperation(_, _, left, right):
                return replace(query, left=self.query(left), right=self.query(right))
            case TopRows(inner):
                return replace(query, query=self.query(inner))

    def project(self, query: Project) -> Project:
        having = None if query.having is None else self.expression(query.having)
        return Project(self._source(query.source), self._items(query.items), having)

    def _source(self, source: Relation | Group | Window) -> Relation | Group | Window:
        match source:
            case Group(relation, keys, aggregates):
                return Group(self.relation(relation), self._items(keys), self._items(aggregates))
            case Window(relation, functions, partition):
                return Window(self.relation(relation), self._items(functions), self._all(partition))
            case _:
                return self.relation(source)

    def _items(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(Item(item.name, self.expression(item.expression)) for item in items)

    def _all(self, expressions: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
        return tuple(map(self.expression, expressions))
