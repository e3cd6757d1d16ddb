"""Two answers are compared as bags: NULL equals NULL, copies count, fractions may differ in their last digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from viewkeeper.execution.comparison import _differ

Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    ("theirs", "ours", "differ"),
    [
        ([(1, "a"), (2, None)], [(2, None), (1, "a")], False),
        ([(1, "a"), (1, "a")], [(1, "a")], True),
        ([(1, None)], [(1, False)], True),
        ([({"a": 1, "b": 2}, [1])], [({"b": 2, "a": 1}, [1])], False),
        ([({"a": 1},)], [({"a": 2},)], True),
        ([([0.1 + 0.2],)], [([0.3],)], False),
        ([(Decimal("1.10"),)], [(Decimal("1.11"),)], True),
        ([(bytearray(b"x"),)], [(bytearray(b"x"),)], False),
    ],
)
def test_rows_without_fractions(theirs: Rows, ours: Rows, differ: bool) -> None:
    assert _differ(theirs, ours, []) is differ


def test_fractions_may_differ_in_their_last_digits() -> None:
    assert not _differ([(1, 0.1 + 0.2)], [(1, 0.3)], [1])
    assert not _differ([(1, float("nan")), (2, None)], [(1, float("nan")), (2, None)], [1])
    assert _differ([(1, 0.3)], [(1, 0.31)], [1])
    assert _differ([(1, 0.3)], [(2, 0.3)], [1])
    assert _differ([(1, 0.3)], [(1, None)], [1])
