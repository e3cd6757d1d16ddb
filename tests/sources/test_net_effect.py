"""The net effect of feeds against a model that replays them row by row."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from viewkeeper.maintenance.plan import State
from viewkeeper.sources.net_effect import (
    _added_up_one_by_one,
    added_up,
    feed_signs,
    freeze,
    frozen_rows,
    net_bag,
    net_by_key,
)

SCHEMA = pa.schema(
    [("k", pa.int32()), ("v", pa.string()), ("_change_type", pa.string()), ("_commit_version", pa.int64())]
)


def feed_of(*events: tuple[int, str | None, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, event, strict=True)) for event in events], SCHEMA)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(1, "a", "delete", 1), (1, "a", "insert", 2)], {}),
        ([(1, "a", "insert", 1), (1, "a", "delete", 2)], {}),
        ([(1, "a", "insert", 1), (1, "a", "update_preimage", 2), (1, "b", "update_postimage", 2)], {State.INSERTED: [(1, "b")]}),
        ([(1, "a", "update_preimage", 1), (1, "b", "update_postimage", 1), (1, "b", "delete", 2)], {State.DELETED: [(1, "a")]}),
        (
            [(1, "a", "update_preimage", 1), (1, "b", "update_postimage", 1), (1, "b", "update_preimage", 2), (1, "c", "update_postimage", 2)],
            {State.OLD_UPDATED: [(1, "a")], State.NEW_UPDATED: [(1, "c")]},
        ),
        ([(1, "a", "update_preimage", 1), (1, "b", "update_postimage", 1), (1, "b", "update_preimage", 2), (1, "a", "update_postimage", 2)], {}),
        ([(1, "a", "delete", 1), (1, "b", "insert", 3)], {State.OLD_UPDATED: [(1, "a")], State.NEW_UPDATED: [(1, "b")]}),
        ([(1, "a", "update_preimage", 1), (2, "a", "update_postimage", 1)], {State.DELETED: [(1, "a")], State.INSERTED: [(2, "a")]}),
        ([(1, "a", "delete", 1), (1, "a", "insert", 1)], {}),
        ([(1, "a", "delete", 1), (1, "a", "delete", 1)], {State.DELETED: [(1, "a")]}),
        ([], {}),
    ],
)  # fmt: skip
def test_by_key(events: list[Any], expected: dict[State, list[Any]]) -> None:
    found = net_by_key(feed_of(*events), ["k"])
    assert found is not None
    assert {state: rows(table) for state, table in found.items() if table.num_rows} == expected


@pytest.mark.parametrize(
    "events",
    [
        [(1, "a", "insert", 1), (1, "b", "insert", 2)],
        [(1, "a", "insert", 1), (1, "b", "delete", 2)],
        [(1, "a", "delete", 1), (1, "b", "delete", 1)],
        [(1, "a", "delete", 1), (1, "b", "delete", 2)],
        [(1, "a", "insert", 1), (1, "b", "insert", 1)],
    ],
)
def test_a_key_that_was_not_unique_all_the_time(events: list[Any]) -> None:
    assert net_by_key(feed_of(*events), ["k"]) is None


def test_both_agree_with_a_replay() -> None:
    for seed in range(200):
        generator = random.Random(seed)
        old = {k: generator.choice(["a", None]) for k in range(4) if generator.random() < 0.5}
        now = dict(old)
        events: list[tuple[int, str | None, str, int]] = []
        for version in range(1, 6):
            for k in range(4):
                kind = generator.choice(["nothing", "insert", "delete", "update"])
                value = generator.choice(["a", "b", None])
                if kind == "insert" and k not in now:
                    events.append((k, value, "insert", version))
                    now[k] = value
                elif kind == "delete" and k in now:
                    events.append((k, now.pop(k), "delete", version))
                elif kind == "update" and k in now:
                    events += [
                        (k, now[k], "update_preimage", version),
                        (k, value, "update_postimage", version),
                    ]
                    now[k] = value
        generator.shuffle(events)
        feed = feed_of(*events)
        by_key = net_by_key(feed, ["k"])
        assert by_key is not None
        assert set(rows(by_key[State.DELETED])) == {(k, v) for k, v in old.items() if k not in now}
        assert set(rows(by_key[State.INSERTED])) == {(k, v) for k, v in now.items() if k not in old}
        changed = {k for k in old if k in now and old[k] != now[k]}
        assert set(rows(by_key[State.OLD_UPDATED])) == {(k, old[k]) for k in changed}
        assert set(rows(by_key[State.NEW_UPDATED])) == {(k, now[k]) for k in changed}
        bag = net_bag(feed.select(["k", "v"]), feed_signs(feed))
        net = Counter(now.items())
        net.subtract(Counter(old.items()))
        assert Counter(rows(bag[State.ADDED])) == +net
        assert Counter(rows(bag[State.REMOVED])) == -net


def test_values_that_python_compares_otherwise_than_sql() -> None:
    assert freeze(float("nan")) == freeze(float("nan"))
    assert freeze(0.0) == freeze(-0.0)
    assert freeze([("a", 1), ("b", 2)]) == freeze([("b", 2), ("a", 1)])
    assert freeze([1, 2]) != freeze([2, 1])
    assert freeze({"x": [1]}) == freeze({"x": [1]})


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_added_up_alike_in_both_ways(seed: int) -> None:
    generator = random.Random(seed)
    choices: dict[str, tuple[pa.DataType, list[Any]]] = {
        "i": (pa.int32(), [None, 0, 1]),
        "s": (pa.string(), [None, "", "x", "NaN"]),
        "n": (pa.decimal128(9, 2), [None, Decimal("0.00"), Decimal("-1.50")]),
        "day": (pa.date32(), [None, date(2024, 2, 29)]),
        "is": (pa.bool_(), [None, True, False]),
        "sign": (pa.binary(), [None, b"", b"x"]),
    }
    names = generator.sample(sorted(choices), generator.randint(1, 6))
    size = generator.choice([0, 1, 30])
    rows = pa.table(
        {
            name: pa.array([generator.choice(choices[name][1]) for _ in range(size)], choices[name][0])
            for name in names
        }
    )
    signs = [generator.choice([-1, 1]) for _ in range(size)]
    assert added_up(rows, signs) == _added_up_one_by_one(frozen_rows(rows), signs)


def test_another_zero_is_a_change_and_the_same_nan_is_none() -> None:
    feed = pa.table(
        {
            "k": [1, 1, 2, 2],
            "x": [0.0, -0.0, float("nan"), float("nan")],
            "_change_type": ["update_preimage", "update_postimage"] * 2,
            "_commit_version": [1] * 4,
        }
    )
    by_key = net_by_key(feed, ["k"])
    assert by_key is not None
    assert by_key[State.OLD_UPDATED].num_rows == by_key[State.NEW_UPDATED].num_rows == 1
    bag = net_bag(feed.select(["k", "x"]), [-1, 1, -1, 1])
    assert [bag[state].column("k").to_pylist() for state in (State.REMOVED, State.ADDED)] == [[1], [1]]
    assert added_up(feed.select(["k", "x"]), [-1, 1, -1, 1]) == [], (
        "what a view holds is compared as SQL does"
    )


def test_values_that_python_does_not_have_are_compared_all_the_same() -> None:
    rows = pa.table(
        {
            "day": pa.array([3_000_000, 3_000_000, -800_000], pa.date32()),
            "moment": pa.array([2**62, 2**62, -(2**62)], pa.timestamp("us", tz="UTC")),
            "text": pa.array([b"\xff", b"\xff", b"a"]).cast(pa.string(), safe=False),
            "days": pa.array([[3_000_000], [3_000_000], None], pa.list_(pa.date32())),
        }
    )
    assert added_up(rows, [1, -1, 1]) == [(2, 1)]
