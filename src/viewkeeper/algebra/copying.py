"""A relation once more, under aliases of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

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
    walk,
)
from viewkeeper.sql.rendering import column


def copied(relation: Relation, fresh: Callable[[str], str]) -> tuple[Relation, Mapping[str, str]]:
    """The copy, and what each alias of the original is called in it."""
    names = {
        node.alias: fresh(node.alias)
        for node in walk(relation)
        if isinstance(node, (Scan, Derived, Constant, Generate))
    }
    return _relation(relation, names), names


def _relation(relation: Relation, names: Mapping[str, str]) -> Relation:
    match relation:
        case Scan(alias) | Constant(alias):
            return replace(relation, alias=names[alias])
        case Derived(alias, query):
            return Derived(names[alias], _query(query, names))
        case InnerJoin(sources, conditions):
            return InnerJoin(tuple(_relation(each, names) for each in sources), _all(conditions, names))
        case OuterJoin(left, right, conditions) | SemiJoin(left, right, conditions):
            return replace(
                relation,
                left=_relation(left, names),
                right=_relation(right, names),
                conditions=_all(conditions, names),
            )
        case Generate(source, function, alias):
            return replace(
                relation,
                source=_relation(source, names),
                function=_expression(function, names),
                alias=names[alias],
            )


def _query(query: Query, names: Mapping[str, str]) -> Query:
    match query:
        case Project(source, items, having):
            return Project(
                _source(source, names),
                _items(items, names),
                None if having is None else _expression(having, names),
            )
        case SetOperation(_, _, left, right):
            return replace(query, left=_query(left, names), right=_query(right, names))
        case TopRows(inner):
            return replace(query, query=_query(inner, names))


def _source(source: Relation | Group | Window, names: Mapping[str, str]) -> Relation | Group | Window:
    match source:
        case Group(relation, keys, aggregates):
            return Group(_relation(relation, names), _items(keys, names), _items(aggregates, names))
        case Window(relation, functions, partition):
            return Window(_relation(relation, names), _items(functions, names), _all(partition, names))
        case _:
            return _relation(source, names)


def _items(items: tuple[Item, ...], names: Mapping[str, str]) -> tuple[Item, ...]:
    return tuple(Item(item.name, _expression(item.expression, names)) for item in items)


def _all(expressions: tuple[exp.Expr, ...], names: Mapping[str, str]) -> tuple[exp.Expr, ...]:
    return tuple(_expression(each, names) for each in expressions)


def _expression(expression: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table in names:
            return column(node.name, names[node.table])
        return node

    result: exp.Expr = expression.transform(renamed)
    return result
