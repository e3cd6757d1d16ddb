"""Bags compared both ways."""

from __future__ import annotations

from decimal import Decimal

from viewkeeper.testing import compare_bags


def test_equal_bags() -> None:
    rows = [(None, 1), (None, 1), ("a", 2)]
    assert compare_bags(rows, reversed(rows)).is_empty
    assert str(compare_bags(rows, rows)) == "the bags are equal"


def test_every_copy_counts() -> None:
    difference = compare_bags([(None,), (None,), (1,)], [(None,), (2,), (2,)])
    assert difference.missing == ((None,), (1,))
    assert difference.unexpected == ((2,), (2,))
    assert str(difference).splitlines() == [
        "missing: 2",
        "  (None,)",
        "  (1,)",
        "unexpected: 2",
        "  (2,)  2 times",
    ]


def test_floats_within_a_tolerance_and_nothing_else() -> None:
    assert compare_bags([(1, 0.1 + 0.2)], [(1, 0.3)]).is_empty
    assert compare_bags([(float("nan"),)], [(float("nan"),)]).is_empty
    assert compare_bags([(1, 1e10)], [(1, 1e10 + 1)]).is_empty
    assert not compare_bags([(1, 1e10)], [(1, 1e10 + 100)]).is_empty
    assert not compare_bags([(Decimal("1.00"),)], [(Decimal("1.01"),)]).is_empty
    assert not compare_bags([(1, 0.3)], [(2, 0.3)]).is_empty


def test_nested_values() -> None:
    assert compare_bags([([1, None], {"a": 1})], [([1, None], {"a": 1})]).is_empty
    assert not compare_bags([([1, 2],)], [([2, 1],)]).is_empty


def test_a_long_difference_is_cut() -> None:
    shown = str(compare_bags([(n,) for n in range(9)], []))
    assert shown.splitlines()[-2:] == ["  and 4 more", "unexpected: 0"]
