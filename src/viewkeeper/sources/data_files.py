"""The data files of a Delta table at a version, for Spark to read as plain Parquet.

That takes a quarter of the time of a Delta scan, which runs jobs of its own to find the same files. It is right
only where the files are the whole truth: no deletion vectors in them, no partition columns beside them, no mapped,
padded or widened columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from viewkeeper.sources.delta_failures import storage_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import contains_type

PLAIN_FEATURES = {
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "allowColumnDefaults",
    "deletionVectors", "timestampNtz", "domainMetadata", "clustering", "identityColumns", "v2Checkpoint",
    "vacuumProtocolCheck", "inCommitTimestamp",
}  # fmt: skip
"""Table features that do not change how a data file is read."""


def plain_files(
    address: str,
    version: int,
    columns: Sequence[Column],
    limit: tuple[str, Sequence[Any]] | None,
    options: dict[str, str] | None,
) -> list[str] | None:
    """The files that can hold rows with one of the limit's values in its column; None: let Delta read the table."""
    if not names_one_file(address):
        return None
    with storage_failures(f"the Delta table at {address}"):
        table = DeltaTable(address, version=version, storage_options=options)
        if not _is_plain(table, columns):
            return None
        actions = pa.table(table.get_add_actions(flatten=True))
        chosen = _chosen(actions, limit)
        uris = table.file_uris()
        by_path = {uri.rsplit("/", 1)[-1]: uri for uri in uris}
        if len(by_path) != len(uris):
            return None
        files = [by_path[path.rsplit("/", 1)[-1]] for path in chosen]
        if _has_vectors(table, files):
            return None
        return files


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


def _chosen(actions: pa.Table, limit: tuple[str, Sequence[Any]] | None) -> list[str]:
    paths: list[str] = actions.column("path").to_pylist()
    if limit is None:
        return paths
    name, values = limit
    low, high = f"min.{name}", f"max.{name}"
    if low not in actions.column_names or high not in actions.column_names or not values:
        return paths if values else []
    known = [value for value in values if value is not None]
    bounds = zip(paths, actions.column(low).to_pylist(), actions.column(high).to_pylist(), strict=True)
    return [
        path
        for path, least, most in bounds
        if len(known) < len(values)
        or least is None
        or most is None
        or any(least <= value <= most for value in known)
    ]


def _has_vectors(table: DeltaTable, files: Sequence[str]) -> bool:
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return False
    marked = {
        uri.rsplit("/", 1)[-1] for uri in pa.table(table.deletion_vectors()).column("filepath").to_pylist()
    }
    return any(file.rsplit("/", 1)[-1] in marked for file in files)
