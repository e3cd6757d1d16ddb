"""The net effect of a change feed: what remains when everything that was undone is left out.

By key, a row has an old image if the first that happened to it was a removal, and a new image if the last was an
addition. With both it was updated, unless they are the same; with none it came and went. Without a key, equal
rows that came and went cancel each other out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewkeeper.maintenance.plan import State
from viewkeeper.sources.arrow_types import rows_at

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
REMOVALS = ("delete", "update_preimage")


@dataclass
class _Life:
    """What happened to one key: the rows of the feed with its first removal and its last addition."""

    first: int | None = None
    last: int | None = None
    removed_at: int | None = None
    removed: int = -1
    added_at: int | None = None
    added: int = -1

    def hear(self, row: int, version: int, is_removal: bool) -> None:
        self.first = version if self.first is None else min(self.first, version)
        self.last = version if self.last is None else max(self.last, version)
        if is_removal and (self.removed_at is None or version < self.removed_at):
            self.removed_at, self.removed = version, row
        if not is_removal and (self.added_at is None or version > self.added_at):
            self.added_at, self.added = version, row

    @property
    def old(self) -> int | None:
        return self.removed if self.removed_at is not None and self.removed_at == self.first else None

    @property
    def new(self) -> int | None:
        return self.added if self.added_at is not None and self.added_at == self.last else None


def net_by_key(feed: pa.Table, key: Sequence[str]) -> dict[State, pa.Table]:
    """Deletions, insertions, and updates with both images."""
    lives: dict[Hashable, _Life] = {}
    keys = frozen_rows(feed.select(list(key)))
    versions = feed.column(COMMIT_VERSION).to_pylist()
    removals = [kind in REMOVALS for kind in feed.column(CHANGE_TYPE).to_pylist()]
    for row, (values, version, is_removal) in enumerate(zip(keys, versions, removals, strict=True)):
        lives.setdefault(values, _Life()).hear(row, version, is_removal)
    data = feed.drop_columns(
        [name for name in feed.column_names if name.startswith(("_change_", "_commit_"))]
    )
    pairs = [(life.old, life.new) for life in lives.values()]
    updates = [(old, new) for old, new in pairs if old is not None and new is not None]
    before = frozen_rows(rows_at(data, [old for old, _ in updates]))
    after = frozen_rows(rows_at(data, [new for _, new in updates]))
    changed = [pair for pair, old, new in zip(updates, before, after, strict=True) if old != new]
    return {
        State.DELETED: rows_at(data, [old for old, new in pairs if old is not None and new is None]),
        State.INSERTED: rows_at(data, [new for old, new in pairs if new is not None and old is None]),
        State.OLD_UPDATED: rows_at(data, [old for old, _ in changed]),
        State.NEW_UPDATED: rows_at(data, [new for _, new in changed]),
    }


def net_bag(rows: pa.Table, signs: Sequence[int]) -> dict[State, pa.Table]:
    """Signed rows added up."""
    counts: dict[Hashable, list[int]] = {}
    for row, (values, sign) in enumerate(zip(frozen_rows(rows), signs, strict=True)):
        entry = counts.setdefault(values, [row, 0])
        entry[1] += sign
    removed = [row for row, count in counts.values() for _ in range(-count)]
    added = [row for row, count in counts.values() for _ in range(count)]
    return {State.REMOVED: rows_at(rows, removed), State.ADDED: rows_at(rows, added)}


def feed_signs(feed: pa.Table) -> list[int]:
    return [-1 if kind in REMOVALS else 1 for kind in feed.column(CHANGE_TYPE).to_pylist()]


def frozen_rows(table: pa.Table) -> list[Hashable]:
    columns = [[freeze(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def freeze(value: Any) -> Hashable:
    """A value as something that can be compared: NaN equals itself, maps are equal in any order.

    >>> freeze([("b", 1), ("a", float("nan"))])
    ('map', (('tuple', ('a', 'NaN')), ('tuple', ('b', 1))))
    """
    match value:
        case float():
            return "NaN" if math.isnan(value) else value
        case list() if value and all(isinstance(each, tuple) for each in value):
            return "map", tuple(sorted((freeze(each) for each in value), key=repr))
        case list():
            return "list", tuple(freeze(each) for each in value)
        case tuple():
            return "tuple", tuple(freeze(each) for each in value)
        case dict():
            return "dict", tuple((name, freeze(each)) for name, each in value.items())
        case _:
            return value  # type: ignore[no-any-return]
