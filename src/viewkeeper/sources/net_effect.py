"""The net effect of a change feed: what remains when everything that was undone is left out.

By key, a row has an old image if the first that happened to it was a removal, and a new image if the last was an
addition. With both it was updated, unless they are the same; with none it came and went. That holds only if no two
rows had the same key at any time; a feed in which a key was added twice, or another image removed than was there,
has no net effect by key. Without a key, equal rows that came and went cancel each other out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.maintenance.plan import State
from viewkeeper.sources.arrow_types import rows_at

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
_ABOUT_THE_CHANGE = {CHANGE_TYPE, COMMIT_VERSION, "_commit_timestamp"}
REMOVALS = ("delete", "update_preimage")


@dataclass
class _Life:
    """What happened to one key, event by event: its images before and after, as rows of the feed."""

    old: int | None = None
    new: int | None = None
    is_known: bool = False

    def remove(self, row: int, images: Sequence[Hashable]) -> bool:
        """False if the row that is there has another image, or there is none."""
        if self.is_known:
            was_there = self.new is not None and images[self.new] == images[row]
            self.new = None
            return was_there
        self.old, self.is_known = row, True
        return True

    def add(self, row: int) -> bool:
        """False if there is a row with this key already."""
        was_free = self.new is None
        self.new, self.is_known = row, True
        return was_free


def net_by_key(feed: pa.Table, key: Sequence[str]) -> dict[State, pa.Table] | None:
    """Deletions, insertions, and updates with both images; None if the key was not unique all the time."""
    data = feed.drop_columns([name for name in feed.column_names if name in _ABOUT_THE_CHANGE])
    images, keys = frozen_rows(data, by_bits=True), frozen_rows(feed.select(list(key)))
    versions = feed.column(COMMIT_VERSION).to_pylist()
    removals = [kind in REMOVALS for kind in feed.column(CHANGE_TYPE).to_pylist()]
    lives: dict[Hashable, _Life] = {}
    heard: set[Hashable] = set()
    for row in sorted(range(feed.num_rows), key=lambda at: (versions[at], not removals[at])):
        event = (keys[row], versions[row], removals[row], images[row])
        if event in heard:
            continue  # a MERGE may report the same deletion twice
        heard.add(event)
        life = lives.setdefault(keys[row], _Life())
        if not (life.remove(row, images) if removals[row] else life.add(row)):
            return None
    pairs = [(life.old, life.new) for life in lives.values()]
    changed = [(o, n) for o, n in pairs if o is not None and n is not None and images[o] != images[n]]
    return {
        State.DELETED: rows_at(data, [old for old, new in pairs if old is not None and new is None]),
        State.INSERTED: rows_at(data, [new for old, new in pairs if new is not None and old is None]),
        State.OLD_UPDATED: rows_at(data, [old for old, _ in changed]),
        State.NEW_UPDATED: rows_at(data, [new for _, new in changed]),
    }


def net_bag(rows: pa.Table, signs: Sequence[int]) -> dict[State, pa.Table]:
    """Signed rows added up. Another zero is a change, for an expression can tell it."""
    counts = added_up(rows, signs, by_bits=True)
    removed = [row for row, count in counts for _ in range(-count)]
    added = [row for row, count in counts for _ in range(count)]
    return {State.REMOVED: rows_at(rows, removed), State.ADDED: rows_at(rows, added)}


def added_up(rows: pa.Table, signs: Sequence[int], by_bits: bool = False) -> list[tuple[int, int]]:
    """Of each row whose signs do not add up to nothing: where it stands first, and their sum.

    >>> added_up(pa.table({"a": ["x", "y", "x", "y"]}), [1, 1, 1, -1])
    [(0, 2)]
    """
    if any(_must_be_frozen(column.type) for column in rows.columns):
        return _added_up_one_by_one(frozen_rows(rows, by_bits), signs)
    names = [str(number) for number in range(rows.num_columns)]
    signed = rows.rename_columns(names).append_column("sign", pa.array(signs, pa.int64()))
    numbered = signed.append_column("at", pa.array(range(rows.num_rows), pa.int64()))
    sums = numbered.group_by(names, use_threads=False).aggregate([("at", "min"), ("sign", "sum")])
    left = sums.filter(pc.not_equal(sums.column("sign_sum"), 0)).sort_by("at_min")
    return list(zip(left.column("at_min").to_pylist(), left.column("sign_sum").to_pylist(), strict=True))


def _added_up_one_by_one(rows: Sequence[Hashable], signs: Sequence[int]) -> list[tuple[int, int]]:
    """The same for values that Arrow compares otherwise than SQL, or not at all."""
    sums: dict[Hashable, tuple[int, int]] = {}
    for at, (row, sign) in enumerate(zip(rows, signs, strict=True)):
        first, total = sums.get(row, (at, 0))
        sums[row] = (first, total + sign)
    return [each for each in sums.values() if each[1]]


def feed_signs(feed: pa.Table) -> list[int]:
    return [-1 if kind in REMOVALS else 1 for kind in feed.column(CHANGE_TYPE).to_pylist()]


def frozen_rows(table: pa.Table, by_bits: bool = False) -> list[Hashable]:
    """Rows as something that can be compared, as SQL does; `by_bits` tells 0.0 from −0.0, as 1 / x does."""
    columns = []
    for column in table.columns:
        values = column.cast(_held_exactly(column.type)).to_pylist()
        if _must_be_frozen(column.type):
            values = [freeze(value, by_bits) for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True)) if columns else []


def _must_be_frozen(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _held_exactly(kind: pa.DataType) -> pa.DataType:
    """The type with the same values that Python can hold: its days and moments end with the year 9999, and its texts are
    UTF-8.

    >>> str(_held_exactly(pa.list_(pa.date32())))
    'list<element: int32>'
    """
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _held_exactly(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_held_exactly(kind.key_type), _held_exactly(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _held_exactly(field.type)) for field in kind])
    return kind


def freeze(value: Any, by_bits: bool = False) -> Hashable:
    """A value as something that can be compared: NaN equals itself, maps are equal in any order.

    >>> freeze([("b", 1), ("a", float("nan"))])
    ('map', (('tuple', ('a', 'NaN')), ('tuple', ('b', 1))))
    >>> freeze(0.0) == freeze(-0.0), freeze(0.0, by_bits=True) == freeze(-0.0, by_bits=True)
    (True, False)
    """
    match value:
        case float():
            if by_bits and value == 0 and math.copysign(1, value) < 0:
                return "-0.0"
            return "NaN" if math.isnan(value) else value
        case list() if value and all(isinstance(each, tuple) for each in value):
            return "map", tuple(sorted((freeze(each, by_bits) for each in value), key=repr))
        case list():
            return "list", tuple(freeze(each, by_bits) for each in value)
        case tuple():
            return "tuple", tuple(freeze(each, by_bits) for each in value)
        case dict():
            return "dict", tuple((name, freeze(each, by_bits)) for name, each in value.items())
        case _:
            return value  # type: ignore[no-any-return]
