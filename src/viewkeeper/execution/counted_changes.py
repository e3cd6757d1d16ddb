"""The change set of few signed rows, counted in this process: what `bag_changes.signed_changes` says, without Spark.

Signed rows are added up. The copies of a row that come are numbered on from those that the view has, the copies that go are
its last ones. So the view must tell how many it has of each row. Mostly some of its columns tell it: with columns K and the
rows V of the view before the changes, of which the rows D go,

    if V has as many rows with K = k as D has, then these are the rows of D with K = k, and no others

because the rows that go are in the view. That needs no key and trusts none; if K tells the rows apart it decides everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from viewkeeper.generated_names import CHANGE_KIND, COPY_NUMBER, DELETED, FILE, INSERTED, POSITION, SIGN
from viewkeeper.sources.arrow_types import arrow_schema, in_arrow_types, rows_at, with_one_zero
from viewkeeper.sources.net_effect import added_up, frozen_rows
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple


def can_be_counted(columns: Sequence[Column]) -> bool:
    """Whether rows that are the same for Spark are the same here. Timestamps may lie beyond what Python has."""
    return all(isinstance(each.data_type, Simple) for each in columns) and not any(
        pa.types.is_timestamp(field.type) for field in arrow_schema(columns)
    )


@dataclass(frozen=True)
class CountedChanges:
    """Different rows, and how many copies of each come (+) or go (−)."""

    rows: pa.Table
    counts: Sequence[int]

    @staticmethod
    def of(signed: pa.Table, columns: Sequence[Column]) -> CountedChanges:
        rows = with_one_zero(in_arrow_types(signed, columns))
        sums = added_up(rows, signed.column(SIGN).to_pylist())
        return CountedChanges(rows_at(rows, [at for at, _ in sums]), [count for _, count in sums])

    @cached_property
    def values(self) -> list[Hashable]:
        return frozen_rows(self.rows)

    def at(self, places: Sequence[int]) -> CountedChanges:
        return CountedChanges(rows_at(self.rows, places), [self.counts[place] for place in places])

    def copies_in(self, rows: pa.Table) -> list[int]:
        """How often each row is among rows of the view."""
        wanted = set(self.values)
        found = Counter(row for row in frozen_rows(rows.select(self.rows.column_names)) if row in wanted)
        return [found[row] for row in self.values]

    def decided_by(self, key: Sequence[str], in_view: pa.Table) -> list[bool]:
        """Of which rows the view's rows with the same key, of which it may have more columns, tell how many it has."""
        keys = frozen_rows(self.rows.select(list(key)))
        going = Counter[Hashable]()
        for each, count in zip(keys, self.counts, strict=True):
            going[each] += max(0, -count)
        has = Counter(frozen_rows(in_view.select(list(key))))
        return [has[each] == going[each] for each in keys]

    def going_with_places(self, key: Sequence[str], in_view: pa.Table) -> pa.Table:
        """The copies that go of rows that a key decides, as they are stored, each with one of the places of its key."""
        places: dict[Hashable, list[int]] = {}
        for at, each in enumerate(frozen_rows(in_view.select(list(key)))):
            places.setdefault(each, []).append(at)
        keys = frozen_rows(self.rows.select(list(key)))
        copies = [(row, copy) for row, count in enumerate(self.counts) for copy in range(1, 1 - count)]
        found = rows_at(in_view, [places[keys[row]].pop() for row, _ in copies])
        stored = self._numbered(copies)
        return stored.append_column(FILE, found.column(FILE)).append_column(POSITION, found.column(POSITION))

    def change_set(self, copies_before: Sequence[int]) -> pa.Table:
        """The change set, given how many copies of each row the view has."""
        copies = list(self._copies(copies_before))
        kinds = [INSERTED if self.counts[row] > 0 else DELETED for row, _ in copies]
        return self._numbered(copies).append_column(CHANGE_KIND, pa.array(kinds, pa.string()))

    def _copies(self, copies_before: Sequence[int]) -> Iterator[tuple[int, int]]:
        for row, (count, before) in enumerate(zip(self.counts, copies_before, strict=True)):
            for copy in range(min(before, before + count) + 1, max(before, before + count) + 1):
                yield row, copy

    def _numbered(self, copies: Sequence[tuple[int, int]]) -> pa.Table:
        """Rows by their number here, and the number of the copy."""
        numbers = pa.array([copy for _, copy in copies], pa.int32())
        return rows_at(self.rows, [row for row, _ in copies]).append_column(COPY_NUMBER, numbers)
