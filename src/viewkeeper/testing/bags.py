"""Bags of rows compared both ways: NULLs are equal, floating-point numbers within a relative tolerance."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]

TOLERANCE = 1e-9
_SHOWN = 5


@dataclass(frozen=True)
class BagDifference:
    """`missing` rows were expected and not seen, `unexpected` ones were seen too often; each copy counts."""

    missing: tuple[Row, ...] = ()
    unexpected: tuple[Row, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.missing and not self.unexpected

    def __str__(self) -> str:
        if self.is_empty:
            return "the bags are equal"
        return "\n".join([*_listed("missing", self.missing), *_listed("unexpected", self.unexpected)])


def _listed(what: str, rows: Sequence[Row]) -> list[str]:
    counted = Counter(rows).most_common(_SHOWN)
    lines = [f"  {row!r}{f'  {copies} times' if copies > 1 else ''}" for row, copies in counted]
    more = len(set(rows)) - len(counted)
    return [f"{what}: {len(rows)}", *lines, *([f"  and {more} more"] if more else [])]


def compare_bags(
    expected: Iterable[Sequence[Any]], seen: Iterable[Sequence[Any]], tolerance: float = TOLERANCE
) -> BagDifference:
    """What one bag has that the other has not.

    >>> print(compare_bags([(1, None), (1, None), (2, 0.3)], [(1, None), (2, 0.1 + 0.2), (3, 0.0)]))
    missing: 1
      (1, None)
    unexpected: 1
      (3, 0.0)
    >>> print(compare_bags([([1.0, float("nan")],)], [([1.0, float("nan")],)]))
    the bags are equal
    """
    wanted, found = Counter(map(_frozen_row, expected)), Counter(map(_frozen_row, seen))
    missing, unexpected = list((wanted - found).elements()), list((found - wanted).elements())
    if missing and unexpected:
        missing, unexpected = _without_close_pairs(missing, unexpected, tolerance)
    return BagDifference(tuple(missing), tuple(unexpected))


def _without_close_pairs(
    missing: list[Row], unexpected: list[Row], tolerance: float
) -> tuple[list[Row], list[Row]]:
    """What is left when rows that differ by rounding only have cancelled each other out."""
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in unexpected:
        candidates[_exact_part(row)].append(row)
    left = []
    for row in missing:
        close = candidates[_exact_part(row)]
        partner = next((each for each in close if _is_close(row, each, tolerance)), None)
        if partner is None:
            left.append(row)
        else:
            close.remove(partner)
    return left, [row for rows in candidates.values() for row in rows]


def _exact_part(value: Any) -> Any:
    """A row, or a value in it, without its floating-point numbers."""
    if isinstance(value, tuple):
        return tuple(map(_exact_part, value))
    return "a float" if isinstance(value, float) else value


def _is_close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(
            _is_close(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    return bool(one == other)


def _frozen_row(row: Sequence[Any]) -> Row:
    return tuple(_frozen(value) if isinstance(value, (list, dict)) else value for value in row)


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((key, _frozen(each)) for key, each in value.items())
    return value
