"""In which types the sides of set operations are compared.

SQL converts both sides to a type that they have in common, and compares there. Of one set operation that is the type of the
view's column:

    SELECT i FROM t EXCEPT SELECT d FROM u    is    SELECT CAST(i AS DOUBLE) FROM t EXCEPT SELECT d FROM u

Where the conversion can make one value of two (a BIGINT as DOUBLE), a row of the view does not decide the value of its table:
such a column binds nothing. Integers and decimals are compared by their value, in whatever type that has room for it; and
expressions that are the same but for columns of the same type have the same type.

A set operation inside another has a common type of its own, which need not be the view's. A cast on the way passes through a
UNION, for what is the same before is the same after; but not through INTERSECT and EXCEPT.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.nodes import Item, SetKind, sql_of
from viewkeeper.facts.keys import attribute_of
from viewkeeper.facts.safety.bound_columns import types_of
from viewkeeper.facts.safety.selects import Combined, Select, Selection, Unread, selects
from viewkeeper.sql.binding import Column
from viewkeeper.sql.rendering import as_type
from viewkeeper.sql.types import UNKNOWN, DataType, as_stored, contains_type

_INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_MOST_DIGITS = 38


def with_common_types(selection: Selection, columns: Sequence[Column]) -> Selection:
    """The selection with the conversions of its set operations written out, where they are known."""
    if not isinstance(selection, Combined):
        return selection
    for at, column in enumerate(columns):
        if not _is_exact(selection, at):
            is_known = _is_one_conversion(selection, at, column.data_type)
            selection = _converted(selection, at, column.data_type if is_known else UNKNOWN)
    return selection


def why_not_compared(selection: Selection, columns: Sequence[Column]) -> str | None:
    """Why the types are not known in which a view compares its rows, as a clause; None if they are."""
    if isinstance(selection, Combined):
        for at, column in enumerate(columns):
            if not _is_exact(selection, at) and not _is_one_conversion(selection, at, column.data_type):
                return f"set operations in set operations may compare {column.name} in types of their own"
    return None


def _is_exact(selection: Selection, at: int) -> bool:
    """Whether values of a column are equal for every set operation if and only if they are equal as they are."""
    return _is_of_one_type(selection, at) or _are_numbers(
        [_column_type(each, at) for each in selects(selection)]
    )


def _is_of_one_type(selection: Selection, at: int) -> bool:
    return len({_shape(each, at) for each in selects(selection)}) == 1


def _is_one_conversion(selection: Combined, at: int, wanted: DataType) -> bool:
    """Whether the outermost set operation is the only one that converts, and what it converts was not compared before."""
    return all(
        _is_of_one_type(side, at)
        and (_only_unites(side) or all(_column_type(each, at) == as_stored(wanted) for each in selects(side)))
        for side in (selection.left, selection.right)
    )


def _only_unites(selection: Selection) -> bool:
    match selection:
        case Combined(kind, _, left, right):
            return kind is SetKind.UNION and _only_unites(left) and _only_unites(right)
        case Select():
            return True
        case Unread():
            return False


def _converted(selection: Combined, at: int, wanted: DataType) -> Combined:
    def visit(side: Selection) -> Selection:
        match side:
            case Combined():
                return _converted(side, at, wanted)
            case Select(items) if _column_type(side, at) != as_stored(wanted):
                item = items[at]
                cast = Item(item.name, as_type(item.expression.copy(), wanted))
                return replace(
                    side,
                    items=(*items[:at], cast, *items[at + 1 :]),
                    converted=side.converted | {at},
                )
            case Select() | Unread():
                return side

    return replace(selection, left=visit(selection.left), right=visit(selection.right))


def _column_type(select: Select, at: int) -> DataType | None:
    """The type of a column that is shown as it is in its table; of expressions only Spark knows the types."""
    expression = select.items[at].expression
    return _type_of(expression, select) if isinstance(expression, exp.Column) else None


def _type_of(column: exp.Column, select: Select) -> DataType:
    """As a view stores it; but CHAR stays CHAR, which SQL pads where it compares columns."""
    found = types_of(select.block.tables)[attribute_of(column)]
    return found if contains_type(found, "CHAR") else as_stored(found)


def _shape(select: Select, at: int) -> str:
    """What decides the type of a column: its expression over the types of the columns that it reads."""

    def visit(node: exp.Expr) -> exp.Expr:
        return exp.Var(this=str(_type_of(node, select))) if isinstance(node, exp.Column) else node

    return sql_of(select.items[at].expression.transform(visit))


def _are_numbers(types: Sequence[DataType | None]) -> bool:
    """Whether all are integers or decimals that a decimal has room for.

    >>> from viewkeeper.sql.types import Simple
    >>> _are_numbers([Simple("BIGINT"), Simple("DECIMAL(10,2)")])
    True
    >>> _are_numbers([Simple("BIGINT"), Simple("DECIMAL(38,37)")]), _are_numbers([Simple("BIGINT"), Simple("DOUBLE")])
    (False, False)
    """
    whole, scale = 0, 0
    for each in types:
        name = str(each)
        decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name)
        if decimal is None and name not in _INTEGERS:
            return False
        digits, places = (int(one) for one in decimal.groups()) if decimal else (_INTEGERS[name], 0)
        whole, scale = max(whole, digits - places), max(scale, places)
    return whole + scale <= _MOST_DIGITS
