"""Which values depend on the order in which Spark adds up: sums of FLOAT and DOUBLE, and what is computed from them.

Such a value, computed again over the same rows, may differ in its last bits. So a plan may not look for old rows by it, nor let
an old value that was computed again decide which rows there were:

    old rows of a view are found by its key, or taken from what is stored

Inside a query that means: a group with such an aggregate is kept in an auxiliary view (`maintenance.kept_groups`), whose stored
bits everything above reads. What is left is found here, with the reason why the view is recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.nodes import (
    Attribute,
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
    SetKind,
    SetOperation,
    TopRows,
    Window,
    output_names,
    sql_of,
)
from viewkeeper.facts.number_kinds import Kinds, Number, arguments, kinds_in, number_kind
from viewkeeper.sql.functions import calls

_SUMS = frozenset({"sum", "try_sum"})
_AVERAGES = frozenset({"avg", "mean", "try_avg"})
_MOMENTS = frozenset({
    "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "skewness", "kurtosis", "corr",
    "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy",
})  # fmt: skip
"""Spark computes these step by step with DOUBLEs, whatever type the arguments have."""


def order_dependent_call(expression: exp.Expr, kinds: Kinds) -> str | None:
    """A call in an aggregate or window function whose value depends on the order of rows, as SQL; None if there is none.

    An average of BIGINT is one: Spark adds the values up as DOUBLEs, which have 53 bits. Those of INT fit for millions of rows.
    """
    for each in calls(expression):
        kind = None
        if each.name in _SUMS | _AVERAGES:
            kind = number_kind(arguments(each.node)[0], kinds)
        is_exact = (
            (each.name in _SUMS and kind in (Number.SMALL, Number.BIG, Number.DECIMAL))
            or (each.name in _AVERAGES and kind in (Number.SMALL, Number.DECIMAL))
            or each.name not in _SUMS | _AVERAGES | _MOMENTS
        )
        if not is_exact:
            return sql_of(each.node)
    return None


@dataclass(frozen=True)
class OrderDependence:
    """`values` are the columns that depend on the order of rows, each with the call it comes from; `decisive` is the first
    place where such a value decides which rows there are."""

    values: dict[Attribute, str] = field(default_factory=dict)
    decisive: str | None = None

    def in_any(self, expressions: Iterable[exp.Expr]) -> str | None:
        """The call that one of these expressions depends on."""
        for expression in expressions:
            for column in expression.find_all(exp.Column):
                found = self.values.get((column.table.lower(), column.name.lower()))
                if found is not None:
                    return found
        return None

    def deciding(self, expressions: Iterable[exp.Expr]) -> OrderDependence:
        """The same, where these expressions decide which rows there are."""
        return OrderDependence(self.values, self.decisive or self.in_any(expressions))


def _both(one: OrderDependence, other: OrderDependence) -> OrderDependence:
    return OrderDependence({**one.values, **other.values}, one.decisive or other.decisive)


def order_dependence(node: Relation | Group | Window | Query) -> OrderDependence:
    """What of a relation or query depends on the order of rows. Columns of a query, and outputs of groups and windows, have
    the alias ''."""
    match node:
        case Scan() | Constant():
            return OrderDependence()
        case Derived(alias, query):
            found = order_dependence(query)
            named = {(alias.lower(), name): call for (_, name), call in found.values.items()}
            return OrderDependence(named, found.decisive)
        case InnerJoin(sources, conditions):
            joined = OrderDependence()
            for source in sources:
                joined = _both(joined, order_dependence(source))
            return joined.deciding(conditions)
        case OuterJoin(left, right, conditions) | SemiJoin(left, right, conditions):
            return _both(order_dependence(left), order_dependence(right)).deciding(conditions)
        case Generate(source, function):
            return order_dependence(source).deciding([function])
        case Group(source, keys, aggregates):
            below = order_dependence(source).deciding(key.expression for key in keys)
            return _with_outputs(below, source, aggregates, keeps_columns=False)
        case Window(source, functions, partition):
            below = order_dependence(source).deciding(partition)
            return _with_outputs(below, source, functions, keeps_columns=True)
        case Project(source, items, having):
            below = order_dependence(source).deciding([] if having is None else [having])
            shown = {("", item.name.lower()): below.in_any([item.expression]) for item in items}
            return OrderDependence(_known(shown), below.decisive)
        case SetOperation(kind, _, left, right):
            one, other = order_dependence(left), order_dependence(right)
            places = dict(zip(output_names(right), output_names(left), strict=True))
            renamed = {
                ("", mine.lower()): other.values[("", theirs.lower())]
                for theirs, mine in places.items()
                if ("", theirs.lower()) in other.values
            }
            both = _both(one, OrderDependence(renamed, other.decisive))
            return both if kind is SetKind.UNION else _all_decide(both)
        case TopRows(inner):
            # The order is made total by all columns.
            return _all_decide(order_dependence(inner))


def _all_decide(found: OrderDependence) -> OrderDependence:
    return OrderDependence(found.values, found.decisive or next(iter(found.values.values()), None))


def _with_outputs(
    below: OrderDependence, source: Relation, made: Iterable[Item], keeps_columns: bool
) -> OrderDependence:
    kinds = kinds_in(source)
    outputs: dict[Attribute, str | None] = {}
    for item in made:
        expression = item.expression
        outputs["", item.name.lower()] = below.in_any([expression]) or order_dependent_call(expression, kinds)
    kept = below.values if keeps_columns else {}
    return OrderDependence({**kept, **_known(outputs)}, below.decisive)


def _known(found: dict[Attribute, str | None]) -> dict[Attribute, str]:
    return {key: call for key, call in found.items() if call is not None}
