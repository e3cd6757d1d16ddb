"""Rows of local data files, read in this process from the row groups that can hold them, instead of by a Spark job.

A file tells the least and the greatest value of every column in each of its row groups. So some values are looked for in
few row groups: first in the one column, then, only where there are such rows, the other columns are read.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.arrow_types import UNREADABLE, arrow_schema, in_arrow_types
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple

MOST_FILES = 64
MOST_BYTES = 256 * 1024 * 1024
"""Of the columns to read, as they are stored; why so many is in docs/decisions/0008-plain-parquet.md."""

_BYTES_OF_A_NUMBER = 4
"""Columns with more bytes a value are hardly stored as numbers of a dictionary, and making one takes long."""

_OLD_CALENDAR = b"org.apache.spark.legacyDateTime"


@dataclass(frozen=True)
class _File:
    """A data file, and its row groups that can hold what is looked for, each with the position of its first row."""

    address: str
    parquet: pq.ParquetFile
    groups: Mapping[int, int]

    def stored(self, columns: Sequence[Column]) -> list[str]:
        """The names by which the file has these columns; it lacks those that were added later."""
        names = {name.lower(): name for name in self.parquet.schema_arrow.names}
        return [names[each.name.lower()] for each in columns if each.name.lower() in names]

    def bytes_of(self, columns: Sequence[Column]) -> int:
        wanted = set(self.stored(columns))
        chunks = (chunk for group in self.groups for chunk in _chunks(self.parquet, group))
        return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in wanted)

    def read(self, group: int, columns: Sequence[Column]) -> pa.Table:
        """Columns of a row group as the file has them, for a thread of its own: readers are not shared. Values that are stored
        as numbers of a dictionary stay so until few rows are left of them."""
        names = self.stored(columns)
        numbers = [
            chunk.path_in_schema
            for chunk in _chunks(self.parquet, group)
            if chunk.total_uncompressed_size <= _BYTES_OF_A_NUMBER * chunk.num_values
        ]
        own = pq.ParquetFile(self.address, metadata=self.parquet.metadata, read_dictionary=numbers)
        return own.read_row_group(group, names, use_threads=False)


def rows_with(
    values: Collection[Any],
    column: str,
    columns: Sequence[Column],
    addresses: Collection[str],
    most: int,
) -> pa.Table | None:
    """The rows with one of the values in a column, with their file and position. Past `most` rows no more are looked for.

    None: let Spark read these files, or say what is wrong with them. They may be too many or too large. And Arrow has not
    the range of old timestamps, counts old days otherwise, and names the parts of nested types in its own way.
    """
    if len(addresses) > MOST_FILES or not all(isinstance(each.data_type, Simple) for each in columns):
        return None
    if any(pa.types.is_timestamp(field.type) for field in arrow_schema(columns)):
        return None
    try:
        files = [_File(each, pq.ParquetFile(each), {}) for each in addresses]
        if any(_OLD_CALENDAR in (file.parquet.metadata.metadata or {}) for file in files):
            return None
        files = [_holding(file, values, column) for file in files]
        if sum(file.bytes_of(columns) for file in files) > MOST_BYTES:
            return None
        return _found_in_all(files, _Search(values, column, columns), most)
    except (OSError, *UNREADABLE):
        return None


def no_rows_with_places(columns: Sequence[Column]) -> pa.Table:
    return _with_places(arrow_schema(columns).empty_table(), "", pa.array([], pa.int64()))


def _holding(file: _File, values: Collection[Any], column: str) -> _File:
    """The file with the row groups that can hold one of the values."""
    metadata = file.parquet.metadata
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    starts = accumulate(sizes, initial=0)
    known = sorted(value for value in values if value is not None)
    groups = {
        group: start
        for group, start in zip(range(metadata.num_row_groups), starts, strict=False)
        if _may_hold(_statistics(file.parquet, group, column), known, None in values)
    }
    return _File(file.address, file.parquet, groups)


def _may_hold(found: pq.Statistics | None, known: Sequence[Any], null: bool) -> bool:
    """Whether a row group with these statistics can hold one of the known values, or NULL. Without statistics it can."""
    if found is None or (null and (not found.has_null_count or found.null_count)):
        return True
    if not found.has_min_max:
        return bool(found.num_values)
    return bisect_left(known, found.min) < bisect_right(known, found.max)


def _statistics(parquet: pq.ParquetFile, group: int, column: str) -> pq.Statistics | None:
    chunks = _chunks(parquet, group)
    return next((each.statistics for each in chunks if each.path_in_schema.lower() == column.lower()), None)


def _chunks(parquet: pq.ParquetFile, group: int) -> Iterator[pq.ColumnChunkMetaData]:
    found = parquet.metadata.row_group(group)
    return (found.column(at) for at in range(found.num_columns))


@dataclass(frozen=True)
class _Search:
    """The values, the column that is to have them, and all columns to find."""

    values: Collection[Any]
    column: str
    columns: Sequence[Column]

    def rows_in(self, file: _File, group: int, start: int) -> pa.Table | None:
        """The rows of a row group, whose first one has this position in its file; None if there are none."""
        asked = [each for each in self.columns if each.name == self.column]
        searched = in_arrow_types(file.read(group, asked), asked)
        found = searched.column(0)
        if pa.types.is_integer(found.type):
            found = found.cast(pa.int64())  # the values may be of a wider type
        within = pc.indices_nonzero(pc.is_in(found, pa.array(list(self.values), found.type)))
        if not len(within):
            return None
        rows = searched.take(within)
        rest = [each for each in self.columns if each.name != self.column]
        if rest:
            others = file.read(group, rest).take(within)
            for name in others.column_names:
                rows = rows.append_column(name, others.column(name))
        return _with_places(
            in_arrow_types(rows, self.columns), file.address, pc.add(within.cast(pa.int64()), start)
        )


def _found_in_all(files: Sequence[_File], search: _Search, most: int) -> pa.Table:
    """What the row groups have, each read by whichever processor is free: Arrow decodes outside of Python's lock."""
    found = [no_rows_with_places(search.columns)]
    parts = [(file, group, start) for file in files for group, start in file.groups.items()]
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, max(1, len(parts)))) as threads:
        waiting = [threads.submit(search.rows_in, *part) for part in parts]
        for each in waiting:
            rows = each.result()
            if rows is not None:
                found.append(rows)
                most -= rows.num_rows
            if most < 0:
                break
        threads.shutdown(wait=True, cancel_futures=True)
    return pa.concat_tables(found)


def _with_places(rows: pa.Table, address: str, positions: pa.Array) -> pa.Table:
    return rows.append_column(FILE, pa.array([address] * rows.num_rows, pa.string())).append_column(
        POSITION, positions
    )
