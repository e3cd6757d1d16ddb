"""What a view of groups keeps beside its visible columns, so that counts, sums and averages can be updated.

Counts and exact sums of a group follow from the old ones and from the rows that came and went. A sum needs the
number of its values that are not NULL, an average the sum and that number, and every group the number of its
rows: with none left, the group is gone. Bits that are odd follow likewise, for what goes turns what came. Bounds (minima,
maxima, bits that all or any values have) follow from the old ones and what came, unless something of what they show went.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from viewkeeper.algebra.additive_aggregates import why_not_from_sums
from viewkeeper.algebra.nodes import Derived, Group, Item, Project, TopRows, output_names, sql_of
from viewkeeper.facts.number_kinds import Number, kinds_in, number_kind
from viewkeeper.generated_names import HIDDEN_PREFIX, is_hidden
from viewkeeper.sql.binding import Column
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import as_type, call, column
from viewkeeper.sql.types import UNKNOWN, Simple

ROWS = f"{HIDDEN_PREFIX}rows"
"""The number of rows of a group. A view of groups that has this column is updated, not read again."""

_OF_BIGINT = Simple("DECIMAL(20,0)")


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
    before it goes on computing with it. The sum of whole numbers may be a DECIMAL, the average is a DOUBLE in any case."""

    name: str
    argument: exp.Expr
    sum: str
    count: str
    is_of_whole_numbers: bool = False


@dataclass(frozen=True)
class OddBits:
    """A stored BIT_XOR, and the count of its values."""

    name: str
    argument: exp.Expr
    count: str


class BoundKind(Enum):
    LEAST = "MIN"
    GREATEST = "MAX"
    ALL_BITS = "BIT_AND"
    ANY_BITS = "BIT_OR"

    @property
    def is_of_bits(self) -> bool:
        return self in (BoundKind.ALL_BITS, BoundKind.ANY_BITS)


@dataclass(frozen=True)
class Bound:
    """A stored bound of the values: the greatest that is below all of them, or the least that is above, in the order of
    numbers or of sets of bits. Values that go may leave the bits as they are, so these need the count of values too."""

    name: str
    argument: exp.Expr
    kind: BoundKind
    count: str | None = None

    def over(self, value: exp.Expr) -> exp.Expr:
        """The same bound of another expression."""
        return call(self.kind.value, value)


@dataclass(frozen=True)
class GroupState:
    counts: tuple[Counted, ...]
    sums: tuple[Summed, ...]
    averages: tuple[Average, ...]
    odd_bits: tuple[OddBits, ...]
    bounds: tuple[Bound, ...]


def state_of(group: Group) -> GroupState | str:
    """What must be kept for these aggregates, or the reason why they cannot be updated."""
    counts = [Counted(ROWS, None)]
    sums: list[Summed] = []
    averages: list[Average] = []
    odd_bits: list[OddBits] = []
    bounds: list[Bound] = []

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
        counted = count_of(_known_with(argument))
        sums.append(Summed(name or f"{HIDDEN_PREFIX}sum_{len(sums) + 1}", argument, counted))
        return sums[-1]

    def sum_for_average(argument: exp.Expr) -> Summed:
        """Spark's average of BIGINT has no overflow, so the sum that it is made of must have none: 20 digits, and ten more
        for the rows. A sum that the view shows has to fit anyway."""
        is_shown = any(known.argument == argument for known in sums)
        is_big = number_kind(argument, kinds) is Number.BIG
        return sum_of(as_type(argument.copy(), _OF_BIGINT) if is_big and not is_shown else argument)

    kinds = kinds_in(group.source)
    calls = [(item, *_call(item.expression)) for item in group.aggregates]
    for item, function, argument in calls:
        if function == "count":
            count_of(argument, item.name)
    for item, function, argument in calls:
        if function == "sum" and argument is not None:
            sum_of(argument, item.name)
    for item, function, argument in calls:
        match function:
            case "count" | "sum":
                continue
            case "avg" if argument is not None:
                summed, number = sum_for_average(argument), number_kind(argument, kinds)
                is_whole = number is not None and number.is_whole
                averages.append(Average(item.name, argument, summed.name, summed.count, is_whole))
            case "bit_xor" if argument is not None:
                odd_bits.append(OddBits(item.name, argument, count_of(argument)))
            case "min" | "max" | "bit_and" | "bit_or" if argument is not None and group.keys:
                kind = BoundKind(function.upper())
                counted = count_of(argument) if kind.is_of_bits else None
                bounds.append(Bound(item.name, argument, kind, counted))
            case _:
                return _why_not_updated(item.expression, group)
    return GroupState(tuple(counts), tuple(sums), tuple(averages), tuple(odd_bits), tuple(bounds))


def _why_not_updated(expression: exp.Expr, group: Group) -> str:
    written = sql_of(expression)
    reason = why_not_from_sums(expression, group.source)
    return f"{written} cannot be updated from its old value" if reason is None else f"{written}: {reason}"


def _known_with(argument: exp.Expr) -> exp.Expr:
    """A part of an argument that is NULL just where all of it is, so that sums share their counts: of the casts and products
    that `moments` writes, none of which fails. Casts of users may give NULL."""
    match argument:
        case exp.Cast(args={"this": inner, "to": exp.Var()}):
            return _known_with(inner)
        case exp.Mul(args={"this": inner, "expression": exp.Literal()}):
            return _known_with(inner)
        case exp.Mul(args={"this": one, "expression": other}) if _known_with(one) == _known_with(other):
            return _known_with(one)
    return argument


def _call(expression: exp.Expr) -> tuple[str, exp.Expr | None]:
    """An aggregate as the name of its function and its argument; a FILTER becomes part of the argument. Without a name if it
    has several arguments, or DISTINCT."""
    condition: exp.Expr | None = None
    called = expression
    if isinstance(called, exp.Filter):
        condition, called = called.expression.this, called.this
    name, arguments = function_name(called), [called.this, *called.expressions]
    if isinstance(called, exp.AnonymousAggFunc):
        arguments = called.expressions
    if len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
        return "", None
    argument: exp.Expr | None = arguments[0]
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
    kept += [Item(each.name, call("BIT_XOR", each.argument.copy())) for each in state.odd_bits]
    kept += [Item(each.name, each.over(each.argument.copy())) for each in state.bounds]
    return keys + tuple(item for item in kept if item.name not in shown)


def _kept_state(query: Project) -> GroupState | None:
    """The state of its groups, if they can be updated. With HAVING only the groups shown have a state: that is no use where
    there is but one group."""
    if not isinstance(query.source, Group) or (query.having is not None and not query.source.keys):
        return None
    state = state_of(query.source)
    return None if isinstance(state, str) else state


def inexact_sum(query: Project, stored: Sequence[Column]) -> str | None:
    """A sum among the stored columns to which adding and subtracting is not exact, if there is one."""
    state = _kept_state(query)
    if state is None:
        return None
    types = {each.name: each.data_type for each in stored}
    averaged = {average.sum for average in state.averages}
    kinds = kinds_in(query.source.source) if isinstance(query.source, Group) else {}
    for summed in state.sums:
        data_type, written = types.get(summed.name, UNKNOWN), sql_of(summed.argument)
        if data_type == UNKNOWN:
            continue
        if not _adds_exactly(str(data_type), summed.name in averaged, _is_ours(summed.argument)):
            return f"SUM({written}) is a {data_type}, to which adding is not exact"
        is_only_averaged = summed.name in averaged and is_hidden(summed.name)
        if is_only_averaged and str(data_type) == "BIGINT" and number_kind(summed.argument, kinds) is None:
            return (
                f"SUM({written}) may overflow where AVG({written}) does not; a CAST to INT would rule it out"
            )
    return None


def _is_ours(argument: exp.Expr) -> bool:
    """Whether the argument of a sum was written by `moments` or for an average of BIGINT, so that its sums have room."""
    return any(isinstance(each.args["to"], exp.Var) for each in argument.find_all(exp.Cast))


def why_read_again(query: Project, stored: Sequence[Column]) -> str:
    """Why the groups of a view that keeps no state of them are read again."""
    assert isinstance(query.source, Group)
    state = state_of(query.source)
    if isinstance(state, str):
        return state
    return inexact_sum(query, stored) or "a sum of FLOAT, DOUBLE or DECIMAL(38, …) is not exact"


def _adds_exactly(data_type: str, is_divided: bool, has_room: bool = False) -> bool:
    """Whether sums of a type can be updated. The old sum plus what came minus what went has two digits more; where these are
    more than 38, Spark keeps only six decimals, and an average has four more than its values. A sum of 38 digits may overflow
    on the way although the result does not, unless it `has_room`.

    >>> [_adds_exactly(each, False) for each in ("BIGINT", "DECIMAL(20,2)", "DECIMAL(37,4)", "DECIMAL(37,10)", "DOUBLE")]
    [True, True, True, False, False]
    >>> _adds_exactly("DECIMAL(36,4)", True), _adds_exactly("DECIMAL(36,2)", True), _adds_exactly("DECIMAL(34,9)", True)
    (False, True, True)
    >>> _adds_exactly("DECIMAL(38,0)", False), _adds_exactly("DECIMAL(38,0)", False, has_room=True)
    (False, True)
    """
    if data_type == "BIGINT":
        return True
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", data_type)
    if found is None:
        return False
    precision, scale = int(found[1]), int(found[2])
    if precision == 38 and not has_room:
        return False
    return precision <= (34 if is_divided else 36) or scale <= (2 if is_divided else 6)
