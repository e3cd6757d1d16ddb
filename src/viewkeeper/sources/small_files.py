"""Rows of small data files, read in this process instead of by a Spark job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.arrow_types import arrow_schema, in_arrow_types
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple

MOST_FILES = 16
MOST_BYTES = 4 * 1024 * 1024

_OLD_CALENDAR = b"org.apache.spark.legacyDateTime"


def are_small(sizes: Collection[int]) -> bool:
    """Whether files of these sizes, in bytes, are read here."""
    return len(sizes) <= MOST_FILES and sum(sizes) <= MOST_BYTES


def rows_with(
    values: Collection[Any], column: str, columns: Sequence[Column], addresses: Iterable[str]
) -> pa.Table | None:
    """The rows with one of the values in a column, with their file and position.

    None: let Spark read these files, or say what is wrong with them. Arrow has not the range of old timestamps, counts
    old days otherwise, and names the parts of nested types in its own way.
    """
    if not all(isinstance(each.data_type, Simple) for each in columns):
        return None
    if any(pa.types.is_timestamp(field.type) for field in arrow_schema(columns)):
        return None
    parts = [no_rows_with_places(columns)]
    for address in addresses:
        try:
            file = pq.ParquetFile(address)
            if _OLD_CALENDAR in (file.metadata.metadata or {}):
                return None
            stored = {name.lower(): name for name in file.schema_arrow.names}
            names = [stored[each.name.lower()] for each in columns if each.name.lower() in stored]
            rows = in_arrow_types(file.read(names), columns)
        except (OSError, pa.ArrowException):
            return None
        found = rows.column(column)
        if pa.types.is_integer(found.type):
            found = found.cast(pa.int64())  # the values may be of a wider type
        positions = pc.indices_nonzero(pc.is_in(found, pa.array(list(values), found.type))).cast(pa.int64())
        parts.append(_with_places(rows.take(positions), address, positions))
    return pa.concat_tables(parts)


def no_rows_with_places(columns: Sequence[Column]) -> pa.Table:
    return _with_places(arrow_schema(columns).empty_table(), "", pa.array([], pa.int64()))


def _with_places(rows: pa.Table, address: str, positions: pa.Array) -> pa.Table:
    return rows.append_column(FILE, pa.array([address] * rows.num_rows, pa.string())).append_column(
        POSITION, positions
    )
