"""Aggregates as expressions over counts and sums, which can be updated from what came and what went.

    bool_or(x)     count(x where x) > 0, NULL of no values
    var_pop(x)     (n * sum(x²) - sum(x)²) / n²  with n = count(x), exact until the division, for whole numbers

What the query shows at first is what Spark makes of the aggregate itself; the same up to the last digits of a DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from viewkeeper.algebra.column_types import column_type
from viewkeeper.algebra.expressions import aggregates, replaced
from viewkeeper.algebra.nodes import Group, Item, Project, Relation, sql_of
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import as_type, call, column, literal
from viewkeeper.sql.types import Simple

_WHOLE = frozenset({Simple("TINYINT"), Simple("SMALLINT"), Simple("INT")})
"""Sums of squares of these, and their products with counts, have no more than 38 digits."""

_TEN_DIGITS, _SUM, _SUM_OF_PRODUCTS = (
    Simple("DECIMAL(10,0)"),
    Simple("DECIMAL(19,0)"),
    Simple("DECIMAL(28,0)"),
)
_DOUBLE = Simple("DOUBLE")


def with_additive_aggregates(query: Project) -> Project:
    """The query with as few kinds of aggregates as there can be."""
    group = query.source
    if not isinstance(group, Group):
        return query
    kept: list[Item] = []
    above: dict[str, exp.Expr] = {}
    for item in group.aggregates:
        made = _over_counts_and_sums(item.expression, group.source)
        if made is None:
            kept.append(item)
        else:
            above[sql_of(column(item.name))] = made
    if not above:
        return query
    names: dict[str, exp.Expr] = {sql_of(item.expression): column(item.name) for item in kept}
    for made in above.values():
        for each in aggregates(made):
            if sql_of(each) not in names:
                name = f"{HIDDEN_PREFIX}part_{len(names) + 1}"
                kept.append(Item(name, each))
                names[sql_of(each)] = column(name)
    shown = {name: exp.Paren(this=replaced(made, names)) for name, made in above.items()}
    return Project(
        Group(group.source, group.keys, tuple(kept)),
        tuple(Item(item.name, replaced(item.expression, shown)) for item in query.items),
        None if query.having is None else replaced(query.having, shown),
    )


def _over_counts_and_sums(expression: exp.Expr, relation: Relation) -> exp.Expr | None:
    condition, inner = None, expression
    if isinstance(inner, exp.Filter):
        condition, inner = inner.expression.this, inner.this
    arguments = [
        inner.args[key] for key in ("this", "expression") if isinstance(inner.args.get(key), exp.Expr)
    ]
    if any(isinstance(each, exp.Distinct) for each in arguments):
        return None
    make = _WRITERS.get(function_name(inner))
    if make is not None:
        return make(_where(condition, arguments[0]))
    if function_name(inner) in _MOMENTS and all(column_type(each, relation) in _WHOLE for each in arguments):
        first, last = arguments[0], arguments[-1]
        conditions = [each for each in [condition] if each is not None]
        if first != last:
            conditions += [
                exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in arguments
            ]
        together = exp.and_(*conditions) if conditions else None
        return _MOMENTS[function_name(inner)](_where(together, first), _where(together, last))
    return None


def _where(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    return value.copy() if condition is None else exp.Case().when(condition.copy(), value.copy())


def _count(value: exp.Expr) -> exp.Expr:
    return exp.Count(this=value.copy())


def _some(value: exp.Expr, made: exp.Expr, at_least: int = 1) -> exp.Expr:
    """NULL unless there are so many values."""
    return exp.Case().when(exp.GTE(this=_count(value), expression=literal(at_least)), made)


def _count_if(value: exp.Expr) -> exp.Expr:
    return _count(_where(value, literal(1)))


def _bool_or(value: exp.Expr) -> exp.Expr:
    return _some(value, exp.GT(this=_count_if(value), expression=literal(0)))


def _bool_and(value: exp.Expr) -> exp.Expr:
    return _some(value, exp.EQ(this=_count_if(value), expression=_count(value)))


_WRITERS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "count_if": _count_if,
    "bool_or": _bool_or,
    "bool_and": _bool_and,
}


def _moment(first: exp.Expr, last: exp.Expr, is_sample: bool, is_root: bool = False) -> exp.Expr:
    """The covariance of two columns of whole numbers; of a column with itself it is the variance."""
    one, other = (as_type(each.copy(), _TEN_DIGITS) for each in (first, last))
    products = as_type(exp.Sum(this=exp.Mul(this=one, expression=other)), _SUM_OF_PRODUCTS)
    sums = [as_type(exp.Sum(this=each.copy()), _SUM) for each in (first, last)]
    count = as_type(_count(first), _TEN_DIGITS)
    above = exp.Sub(
        this=exp.Mul(this=count, expression=products), expression=exp.Mul(this=sums[0], expression=sums[1])
    )
    fewer = exp.Paren(this=exp.Sub(this=_count(first), expression=literal(1))) if is_sample else _count(first)
    below = exp.Mul(this=as_type(_count(first), _DOUBLE), expression=as_type(fewer, _DOUBLE))
    value: exp.Expr = exp.Div(this=as_type(above, _DOUBLE), expression=exp.Paren(this=below))
    return _some(first, call("SQRT", value) if is_root else value, at_least=2 if is_sample else 1)


_MOMENTS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "var_pop": partial(_moment, is_sample=False),
    "variance": partial(_moment, is_sample=True),
    "var_samp": partial(_moment, is_sample=True),
    "stddev_pop": partial(_moment, is_sample=False, is_root=True),
    "stddev": partial(_moment, is_sample=True, is_root=True),
    "stddev_samp": partial(_moment, is_sample=True, is_root=True),
    "covar_pop": partial(_moment, is_sample=False),
    "covar_samp": partial(_moment, is_sample=True),
}
