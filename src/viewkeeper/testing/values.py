"""A few values of each type: few, so that random rows meet each other in joins, groups and filters."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlglot import exp

from viewkeeper.errors import UnsupportedError
from viewkeeper.sql.binding import Column
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.types import DataType, Simple

INTEGERS = (0, 1, 2, 3, 4, 5, 6, 7, -1)
STRINGS = ("a", "b", "ab", "c", "", "B", "ba", "ca")
DECIMALS = (Decimal("0.00"), Decimal("1.50"), Decimal("2.25"), Decimal("-1.00"), Decimal("3.00"))
DATES = tuple(
    datetime.date(2024, month, day)
    for month, day in ((1, 1), (1, 2), (1, 9), (1, 31), (2, 29), (3, 1), (7, 4), (12, 31))
)
DOUBLES = (0.5, -1.25, 2.0, 3.75)
"""Sums of these are exact in every order."""
HARD_DOUBLES = (0.1, 0.2, 0.7, -0.3, 1.1, 12.34, 0.0, -0.0)
"""Sums of these are not: their last bits depend on the order."""
NOT_NUMBERS = (float("nan"), float("inf"), float("-inf"))
HARD_BIGINTS = (2**53 + 1, -(2**53) - 3, 2**31, -(2**40))
"""Not all of these are DOUBLEs."""
HARD_DATES = (datetime.date(1, 1, 1), datetime.date(1582, 10, 4), datetime.date(9999, 12, 31))
_TIMES = tuple(datetime.datetime(2024, 2, day, 12, 30) for day in (1, 2, 29))
_BYTES = (b"", b"a", b"\x00\xff")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")

_LITERALS_KEPT = 12


@dataclass(frozen=True)
class Values:
    """The values that random rows are made of; `literals` are those that a view's own text compares with. With `are_hard`,
    there are also some that are rounded, that are far away, or that are no numbers."""

    literals: Sequence[Any] = ()
    null_share: float = 0.15
    are_hard: bool = False
    _pools: dict[DataType, tuple[Any, ...]] = field(default_factory=dict, repr=False, compare=False)

    def value(self, generator: random.Random, column: Column) -> Any:
        if column.nullable and generator.random() < self.null_share:
            return None
        return generator.choice(self._pool(column.data_type))

    def _pool(self, data_type: DataType) -> tuple[Any, ...]:
        if data_type not in self._pools:
            pool = _pool(data_type, self.literals)
            self._pools[data_type] = (*pool, *_hard(data_type)) if self.are_hard else pool
        return self._pools[data_type]


def _hard(data_type: DataType) -> tuple[Any, ...]:
    match data_type:
        case Simple("DOUBLE"):
            return (*HARD_DOUBLES, *HARD_DOUBLES, *HARD_DOUBLES, *NOT_NUMBERS)
        case Simple("BIGINT"):
            return HARD_BIGINTS
        case Simple("DATE"):
            return HARD_DATES
        case _:
            return ()


def _pool(data_type: DataType, literals: Iterable[Any]) -> tuple[Any, ...]:
    name = data_type.name if isinstance(data_type, Simple) else ""
    length = _length(name)
    numbers = [each for each in literals if isinstance(each, Decimal)]
    texts = [each for each in literals if isinstance(each, str)]
    if name in _WHOLE:
        return (*INTEGERS, *_around(int(each) for each in numbers if abs(each) < 100))
    if name.startswith("DECIMAL"):
        return _decimals(name, numbers)
    if name in ("FLOAT", "DOUBLE"):
        return (*DOUBLES, *(float(each) for each in numbers))
    if name == "STRING" or length is not None:
        return tuple(each for each in (*STRINGS, *texts) if length is None or len(each) <= length)
    if name == "DATE":
        return (*DATES, *(found for each in texts if (found := _date(each)) is not None))
    if name.startswith("TIMESTAMP"):
        return _TIMES
    if name == "BOOLEAN":
        return (True, False)
    if name == "BINARY":
        return _BYTES
    raise UnsupportedError(
        f"random values of the type {data_type} are not made.", "leave the column out of the schema."
    )


def _length(name: str) -> int | None:
    is_limited = name.startswith(("CHAR(", "VARCHAR("))
    return int(name[name.index("(") + 1 : -1]) if is_limited else None


def _around(numbers: Iterable[int]) -> list[int]:
    return [near for each in numbers for near in (each - 1, each, each + 1)]


def _decimals(name: str, numbers: Iterable[Decimal]) -> tuple[Decimal, ...]:
    precision, scale = (int(part) for part in name.removeprefix("DECIMAL(").removesuffix(")").split(","))
    unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)
    return tuple({each.quantize(unit) for each in (*DECIMALS, *numbers) if abs(each) < limit - 1})


def _date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None


def literals_of(query: str) -> list[Any]:
    """The strings and numbers (as Decimal) in a query, so that its filters let some random rows pass.

    >>> literals_of("SELECT * FROM t WHERE state = 'open' AND price > 9.5")
    ['open', Decimal('9.5')]
    """
    found: Mapping[Any, None] = dict.fromkeys(
        each.this if each.is_string else Decimal(each.this)
        for each in parse_sql(query).find_all(exp.Literal, bfs=False)
    )
    return list(found)[:_LITERALS_KEPT]
