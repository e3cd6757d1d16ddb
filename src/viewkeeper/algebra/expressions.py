"""Small questions about expressions, and small changes to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from viewkeeper.algebra.nodes import sql_of
from viewkeeper.sql.functions import AggregateKind, aggregate_kind, function_name, is_aggregate
from viewkeeper.sql.rendering import column


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold."""
    match condition:
        case None:
            return []
        case exp.Paren():
            return conjuncts(condition.this)
        case exp.And():
            return conjuncts(condition.this) + conjuncts(condition.expression)
        case _:
            return [] if condition == exp.true() else [condition]


def without_parentheses(expression: exp.Expr) -> exp.Expr:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def outermost_subqueries(expression: exp.Expr) -> list[exp.Expr]:
    """The queries inside an expression, not those inside them."""
    return list(_outermost(expression, lambda node: isinstance(node, exp.Query)))


def windows(expression: exp.Expr) -> list[exp.Expr]:
    """The window functions in an expression."""
    return list(_outermost(expression, lambda node: isinstance(node, exp.Window)))


def aggregates(expression: exp.Expr) -> list[exp.Expr]:
    """The calls of aggregates in an expression, each with its FILTER and IGNORE NULLS. A window function is none, but may be over
    some: SUM(SUM(x)) OVER ()."""
    return list(_outermost(expression, _is_aggregate))


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node.parent, exp.Window) and node.arg_key == "this":
        return False
    if isinstance(node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        return False
    if aggregate_kind(function_name(node)) is AggregateKind.GROUPING:
        return False
    is_wrapped = isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls))
    return is_wrapped or is_aggregate(node)


def _outermost(node: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    if wanted(node):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _outermost(child, wanted)


def replaced(expression: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with parts, known by their SQL, replaced; what stands in subqueries stays."""
    copied = expression.copy()
    within = {id(node) for query in outermost_subqueries(copied) for node in query.walk()}

    def visit(node: exp.Expr) -> exp.Expr:
        found = None if id(node) in within else names.get(sql_of(node))
        return node if found is None else found.copy()

    result: exp.Expr = copied.transform(visit, copy=False)
    return result


def standing_for(place: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A copy of an expression that is to stand where another does, in parentheses where it would be read otherwise.

    >>> from viewkeeper.sql.script import parse_sql
    >>> tree = parse_sql("SELECT x[0], f(x) FROM t")
    >>> for place in list(tree.find_all(exp.Column)):
    ...     _ = place.replace(standing_for(place, exp.Add(this=column("a"), expression=column("b"))))
    >>> print(sql_of(tree))
    SELECT (`a` + `b`)[0], F(`a` + `b`) FROM t
    """
    around = place.parent
    is_compound = isinstance(value, (exp.Binary, exp.Unary, exp.Between, exp.In)) and not isinstance(
        value, exp.Paren
    )
    is_apart = isinstance(around, (exp.Alias, exp.Paren, exp.Func)) and not isinstance(around, exp.Connector)
    copied = value.copy()
    return exp.Paren(this=copied) if is_compound and around is not None and not is_apart else copied


def equality_sides(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality."""
    inner = without_parentheses(condition)
    return (inner.this, inner.expression) if isinstance(inner, exp.EQ) else None


def qualified_columns(expressions: Iterable[exp.Expr]) -> list[exp.Column]:
    """Every column that the expressions read, once, in a fixed order."""
    found = {
        (each.table, each.name): column(each.name, each.table)
        for expression in expressions
        for each in expression.find_all(exp.Column)
        if each.table
    }
    return [found[key] for key in sorted(found)]
