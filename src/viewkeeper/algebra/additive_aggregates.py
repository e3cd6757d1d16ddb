"""Aggregates as expressions over counts and sums, which can be updated from what came and what went.

    bool_or(x)     count(x where x) > 0, NULL of no values
    var_pop(x)     from count(x), sum(x) and sum(x * x), which are exact: see `moments`

The view shows these expressions from the first load on: what Spark makes of the aggregate itself is the same up to the last
digits of a DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sqlglot import exp

from viewkeeper.algebra.column_types import column_type
from viewkeeper.algebra.expressions import aggregates, replaced
from viewkeeper.algebra.moments import (
    MOST_DIGITS,
    Whole,
    correlation,
    covariance,
    deviation,
    digits_of,
    if_there_are,
)
from viewkeeper.algebra.nodes import Group, Item, Project, Relation, sql_of
from viewkeeper.errors import UnsupportedError
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import column, literal
from viewkeeper.sql.types import DataType, read_type_text


def with_additive_aggregates(query: Project) -> Project:
    """The query with as few kinds of aggregates as there can be."""
    group = query.source
    if not isinstance(group, Group):
        return query
    kept: list[Item] = []
    above: dict[str, exp.Expr] = {}
    for item in group.aggregates:
        made = _over_counts_and_sums(item.expression, group.source)
        if made is None and aggregates(item.expression) != [item.expression]:
            made = item.expression  # over aggregates already: `open_aggregates`
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
    shown = {name: _over_columns(made, names) for name, made in above.items()}
    return Project(
        Group(group.source, group.keys, tuple(kept)),
        tuple(Item(item.name, replaced(item.expression, shown)) for item in query.items),
        None if query.having is None else replaced(query.having, shown),
    )


def _over_columns(made: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression over aggregates as one over the columns that hold them."""
    found: exp.Expr = exp.Paren(this=made.copy())
    for each in aggregates(found):
        each.replace(names[sql_of(each)].copy())
    return found


def _over_counts_and_sums(expression: exp.Expr, relation: Relation) -> exp.Expr | None:
    condition, inner, arguments = _parts(expression)
    if any(isinstance(each, exp.Distinct) for each in arguments):
        return None
    make = _OVER_COUNTS.get(function_name(inner))
    if make is not None:
        return make(_where(condition, arguments[0]))
    moment = _MOMENTS.get(function_name(inner))
    if moment is None or why_not_from_sums(expression, relation) is not None:
        return None
    conditions = [each for each in [condition] if each is not None]
    if arguments[0] != arguments[-1]:
        conditions += [exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in arguments]
    together = exp.and_(*conditions) if conditions else None
    one, other = (
        Whole(_where(together, each), *digits)
        for each in (arguments[0], arguments[-1])
        if (digits := digits_of(_type_of(each, relation))) is not None
    )
    return moment(one, other)


def why_not_from_sums(expression: exp.Expr, relation: Relation) -> str | None:
    """Why a deviation, covariance or correlation does not follow from sums that can be kept; None if it does, and for
    other aggregates."""
    _, inner, arguments = _parts(expression)
    if function_name(inner) not in _MOMENTS or isinstance(arguments[0], exp.Distinct):
        return None
    for each in arguments:
        data_type = _type_of(each, relation)
        digits = digits_of(data_type)
        if data_type is None:
            return f"the type of {sql_of(each)} is not known from its table; a CAST would say it"
        if digits is None:
            return f"{sql_of(each)} is a {data_type}, of which no sum is exact"
        if digits[0] > MOST_DIGITS:
            return f"{sql_of(each)} is a {data_type}, and sums of squares are kept of {MOST_DIGITS} digits at most"
    return None


def _parts(expression: exp.Expr) -> tuple[exp.Expr | None, exp.Expr, list[exp.Expr]]:
    """The condition of a FILTER, the call before it, and its arguments."""
    condition, inner = None, expression
    if isinstance(inner, exp.Filter):
        condition, inner = inner.expression.this, inner.this
    arguments = [
        inner.args[key] for key in ("this", "expression") if isinstance(inner.args.get(key), exp.Expr)
    ]
    return condition, inner, arguments


def _type_of(expression: exp.Expr, relation: Relation) -> DataType | None:
    if isinstance(expression, exp.Cast):
        try:
            return read_type_text(expression.to.sql(dialect="spark"))
        except UnsupportedError:
            return None
    return column_type(expression, relation)


def _where(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    return value.copy() if condition is None else exp.Case().when(condition.copy(), value.copy())


def _count(value: exp.Expr) -> exp.Expr:
    return exp.Count(this=value.copy())


def _count_if(value: exp.Expr) -> exp.Expr:
    return _count(_where(value, literal(1)))


def _bool_or(value: exp.Expr) -> exp.Expr:
    return if_there_are(1, value, exp.GT(this=_count_if(value), expression=literal(0)))


def _bool_and(value: exp.Expr) -> exp.Expr:
    return if_there_are(1, value, exp.EQ(this=_count_if(value), expression=_count(value)))


_OVER_COUNTS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "count_if": _count_if,
    "bool_or": _bool_or,
    "bool_and": _bool_and,
}


def _deviation(is_sample: bool) -> Callable[[Whole, Whole], exp.Expr]:
    return lambda one, _: deviation(one, is_sample)


_MOMENTS: dict[str, Callable[[Whole, Whole], exp.Expr]] = {
    "var_pop": partial(covariance, is_sample=False),
    "variance": partial(covariance, is_sample=True),
    "var_samp": partial(covariance, is_sample=True),
    "stddev_pop": _deviation(is_sample=False),
    "stddev": _deviation(is_sample=True),
    "stddev_samp": _deviation(is_sample=True),
    "covar_pop": partial(covariance, is_sample=False),
    "covar_samp": partial(covariance, is_sample=True),
    "corr": correlation,
}
