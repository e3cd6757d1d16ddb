"""What a view of groups keeps beside its visible columns, so that counts, sums and averages can be updated.

Counts and exact sums of a group follow from the old ones and from the rows that came and went. A sum needs the
number of its values that are not NULL, an average the sum and that number, and every group the number of its
rows: with none left, the group is gone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.nodes import Derived, Group, Item, Project, TopRows, output_names, sql_of
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import column
from viewkeeper.sql.types import UNKNOWN

ROWS = f"{HIDDEN_PREFIX}rows"
"""The number of rows of a group. A view of groups that has this column is updated, not read again."""


@dataclass(frozen=True)
class Counted:
    """A stored count: of rows, or of the values of an expression that are not NULL."""

    name: str
    argument: exp.Expr | None


@dataclass(frozen=True)
class Summed:
    """A stored sum, and the count of its values."""

    name: str
    argument: exp.Expr
    count: str


@dataclass(frozen=True)
class Average:
    """A sum divided by a count. It is stored although it follows from these, for Spark tells its type, and rounds to that
    before it goes on computing with it."""

    name: str
    argument: exp.Expr
    sum: str
    count: str


@dataclass(frozen=True)
class Extreme:
    """A stored minimum or maximum. It follows from the old one and what came, unless what it shows went away."""

    name: str
    argument: exp.Expr
    is_least: bool


@dataclass(frozen=True)
class GroupState:
    counts: tuple[Counted, ...]
    sums: tuple[Summed, ...]
    averages: tuple[Average, ...]
    extremes: tuple[Extreme, ...]


def state_of(group: Group) -> GroupState | str:
    """What must be kept for these aggregates, or the reason why they cannot be updated."""
    counts = [Counted(ROWS, None)]
    sums: list[Summed] = []
    averages: list[Average] = []
    extremes: list[Extreme] = []

    def count_of(argument: exp.Expr | None, name: str | None = None) -> str:
        for known in counts:
            if known.name != ROWS and name is None and known.argument == argument:
                return known.name
        counts.append(Counted(name or f"{HIDDEN_PREFIX}count_{len(counts)}", argument))
        return counts[-1].name

    def sum_of(argument: exp.Expr, name: str | None = None) -> Summed:
        for known in sums:
            if name is None and known.argument == argument:
                return known
        counted = count_of(argument)
        sums.append(Summed(name or f"{HIDDEN_PREFIX}sum_{len(sums) + 1}", argument, counted))
        return sums[-1]

    calls = [(item, _call(item.expression)) for item in group.aggregates]
    for item, (function, argument) in calls:
        if function == "count":
            count_of(argument, item.name)
    for item, (function, argument) in calls:
        if function == "sum" and argument is not None:
            sum_of(argument, item.name)
    for item, (function, argument) in calls:
        if function == "avg" and argument is not None:
            summed = sum_of(argument)
            averages.append(Average(item.name, argument, summed.name, summed.count))
        elif function in ("min", "max") and argument is not None and group.keys:
            extremes.append(Extreme(item.name, argument, function == "min"))
        elif function not in ("count", "sum"):
            return f"{sql_of(item.expression)} cannot be updated from its old value"
    return GroupState(tuple(counts), tuple(sums), tuple(averages), tuple(extremes))


def _call(expression: exp.Expr) -> tuple[str, exp.Expr | None]:
    """An aggregate as the name of its function and its argument; a FILTER becomes part of the argument."""
    condition: exp.Expr | None = None
    call = expression
    if isinstance(call, exp.Filter):
        condition, call = call.expression.this, call.this
    names: dict[type[exp.Expr], str] = {
        exp.Count: "count",
        exp.Sum: "sum",
        exp.Avg: "avg",
        exp.Min: "min",
        exp.Max: "max",
    }
    name = names.get(type(call), "")
    argument = call.this
    if isinstance(argument, exp.Distinct) or (call.args.get("expressions") and name):
        name = ""
    if isinstance(argument, exp.Star) or (name == "count" and isinstance(argument, exp.Literal)):
        argument = None
    if condition is not None:
        value = exp.Literal.number(1) if argument is None else argument.copy()
        argument = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
    return name, argument


def hidden_items(query: Project) -> tuple[Item, ...]:
    """The hidden columns that a view of this query would keep: keys that it does not show, and its state; of the first
    rows of an order, what they are ordered by."""
    group = query.source
    shown = {item.name for item in query.items}
    if isinstance(group, Derived) and isinstance(group.query, TopRows):
        names = output_names(group.query)
        return tuple(Item(name, column(name, group.alias)) for name in names if name not in shown)
    if not isinstance(group, Group):
        return ()
    keys = tuple(key for key in group.keys if key.name not in shown)
    state = _kept_state(query)
    if state is None:
        return keys
    kept: list[Item] = []
    for counted in state.counts:
        argument = exp.Star() if counted.argument is None else counted.argument.copy()
        kept.append(Item(counted.name, exp.Count(this=argument)))
    kept += [Item(summed.name, exp.Sum(this=summed.argument.copy())) for summed in state.sums]
    kept += [Item(each.name, exp.Avg(this=each.argument.copy())) for each in state.averages]
    kept += [Item(each.name, aggregate_of(each)) for each in state.extremes]
    return keys + tuple(item for item in kept if item.name not in shown)


def aggregate_of(extreme: Extreme) -> exp.Expr:
    function = exp.Min if extreme.is_least else exp.Max
    return function(this=extreme.argument.copy())


def _kept_state(query: Project) -> GroupState | None:
    """The state of its groups, if they can be updated. With HAVING only the groups shown have a state: that is no use where
    there is but one group, and not built for minima and maxima."""
    if not isinstance(query.source, Group):
        return None
    state = state_of(query.source)
    if isinstance(state, str) or (query.having is not None and (state.extremes or not query.source.keys)):
        return None
    return state


def inexact_sum(query: Project, stored: Sequence[Column]) -> str | None:
    """A sum among the stored columns to which adding and subtracting is not exact, if there is one."""
    state = _kept_state(query)
    if state is None:
        return None
    types = {each.name: each.data_type for each in stored}
    averaged = {average.sum for average in state.averages}
    for summed in state.sums:
        data_type = types[summed.name]
        if data_type != UNKNOWN and not _adds_exactly(str(data_type), summed.name in averaged):
            return f"SUM({sql_of(summed.argument)}) is a {data_type}, to which adding is not exact"
    return None


def _adds_exactly(data_type: str, is_divided: bool) -> bool:
    """Whether sums of a type can be updated. Spark keeps six decimals when the digits of a result are more than 38, and
    an average has four more than its values.

    >>> [_adds_exactly(each, False) for each in ("BIGINT", "DECIMAL(20,2)", "DECIMAL(38,4)", "DECIMAL(38,10)", "DOUBLE")]
    [True, True, True, False, False]
    >>> _adds_exactly("DECIMAL(38,4)", True), _adds_exactly("DECIMAL(38,2)", True)
    (False, True)
    """
    if data_type == "BIGINT":
        return True
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", data_type)
    if found is None:
        return False
    precision, scale = int(found[1]), int(found[2])
    return precision < 38 or scale <= (2 if is_divided else 6)
