"""The data files of a Delta table at a version, for Spark to read as plain Parquet.

That takes a quarter of the time of a Delta scan, which runs jobs of its own to find the same files. It is right
only where nothing but deletion vectors stands between the files and the rows: no partition columns beside them, no
mapped, padded or widened columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from viewkeeper.generated_names import FILE, POSITION
from viewkeeper.sources.arrow_types import UNREADABLE
from viewkeeper.sources.delta_failures import storage_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import contains_type

PLAIN_FEATURES = {
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "allowColumnDefaults",
    "deletionVectors", "timestampNtz", "domainMetadata", "clustering", "identityColumns", "v2Checkpoint",
    "vacuumProtocolCheck", "inCommitTimestamp",
}  # fmt: skip
"""Table features that do not change how a data file is read."""


@dataclass(frozen=True)
class DataFiles:
    """The files of one version by their names, without folders."""

    addresses: Mapping[str, str]
    _table: DeltaTable
    _statistics: Mapping[str, Mapping[str, Any]]

    def holding(self, column: str, values: Collection[Any]) -> list[str]:
        """The names of the files that can hold rows with one of the values in a column."""
        return [name for name, rows in self._estimates(column, values) if rows]

    def estimated_rows(self, column: str, values: Collection[Any]) -> float:
        """About how many rows have one of the values in a column: one for each at least, if there can be any at all."""
        rows = sum(rows for _, rows in self._estimates(column, values))
        return max(rows, len(values)) if rows else 0.0

    def _estimates(self, column: str, values: Collection[Any]) -> Iterator[tuple[str, float]]:
        """By file; nothing only where there can be no such row."""
        known = sorted(value for value in values if value is not None)
        for name, found in self._statistics.items():
            rows, least, most = (
                found.get(each) for each in ("num_records", f"min.{column}", f"max.{column}")
            )
            nulls = found.get(f"null_count.{column}")
            if rows is None or nulls is None or (nulls < rows and (least is None or most is None)):
                yield name, _MANY
                continue
            estimate = float(nulls) if len(known) < len(values) else 0.0
            if nulls < rows:
                within = bisect_right(known, most) - bisect_left(known, least)
                estimate += (rows - nulls) * _share(least, most, within)
            yield name, estimate

    def are_whole(self, names: Sequence[str]) -> bool:
        """Whether no row of these files is deleted."""
        return not any(name in self._kept for name in names)

    def live(self, found: pa.Table) -> pa.Table:
        """Of rows with their file and position, those that this version has."""
        parts = [found.slice(0, 0)]
        for address, rows in _by_file(found):
            name = file_name(address)
            if name not in self.addresses:
                continue
            kept = self._kept.get(name)
            if kept is not None:
                at = pc.min_element_wise(rows.column(POSITION), len(kept) - 1)
                rows = rows.filter(kept.take(at))
            parts.append(rows)
        return pa.concat_tables(parts)

    @cached_property
    def _kept(self) -> dict[str, pa.BooleanArray]:
        """For files with a deletion vector, which rows it leaves; the last entry stands for all behind it."""
        if "deletionVectors" not in (self._table.protocol().reader_features or ()):
            return {}
        vectors = pa.table(self._table.deletion_vectors())
        beyond = pa.array([True])
        return {
            file_name(file): pa.concat_arrays([kept.values, beyond])
            for file, kept in zip(
                vectors.column("filepath").to_pylist(), vectors.column("selection_vector"), strict=True
            )
        }


_MANY = 1e12
_SHARE_OF_TEXTS = 0.1
"""Statistics do not tell how often a text occurs: a guess, so that texts are not taken for more telling than keys."""


def _share(least: Any, most: Any, within: int) -> float:
    """About which part of a file's rows has one of so many values that lie between its least and its greatest."""
    if not within:
        return 0.0
    match least, most:
        case int(), int():
            return min(1.0, within / (most - least + 1))
        case date(), date():
            return min(1.0, within / ((most - least).days + 1))
        case _:
            return _SHARE_OF_TEXTS


def file_name(address: str) -> str:
    """
    >>> file_name("file:///data/shop%20x/part-1.parquet")
    'part-1.parquet'
    """
    return unquote(address).rsplit("/", 1)[-1]


def data_files(
    address: str, version: int, columns: Sequence[Column], options: dict[str, str] | None
) -> DataFiles | None:
    """The files of a version; None: let Delta read the table."""
    if not names_one_file(address):
        return None
    with storage_failures(f"the Delta table at {address}"):
        table = DeltaTable(address, version=version, storage_options=options)
        if not _is_plain(table, columns):
            return None
        addresses = {file_name(uri): uri for uri in table.file_uris()}
        actions = rows_python_holds(pa.table(table.get_add_actions(flatten=True)))
        statistics = {file_name(action["path"]): action for action in actions}
        if len(addresses) != len(actions) or statistics.keys() != addresses.keys():
            return None
        return DataFiles(addresses, table, statistics)


def rows_python_holds(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, without columns that have values which Python cannot hold."""
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        with suppress(*UNREADABLE):
            columns[name] = table.column(name).to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def names_one_file(address: str) -> bool:
    """Whether Spark takes the address as it is: not as a pattern, nor in the names of an object store, which
    delta-rs spells differently.

    >>> names_one_file("/data/shop"), names_one_file("/data/{a}"), names_one_file("s3://bucket/shop")
    (True, False, False)
    """
    return "://" not in address and not set(address) & set("{}*?[]\\")


def _is_plain(table: DeltaTable, columns: Sequence[Column]) -> bool:
    protocol = table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    metadata = table.metadata()
    return (
        not features - PLAIN_FEATURES
        and not metadata.partition_columns
        and metadata.configuration.get("delta.columnMapping.mode", "none") == "none"
        and not any(
            contains_type(column.data_type, kind) for column in columns for kind in ("CHAR", "VARIANT")
        )
    )


def _by_file(found: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    files = found.column(FILE)
    for address in files.unique().to_pylist():
        yield address, found.filter(pc.equal(files, address))
