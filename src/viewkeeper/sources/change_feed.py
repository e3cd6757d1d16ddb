"""The change feed of a Delta table through delta-rs, where it can be trusted to be right.

delta-rs reads small feeds in milliseconds, but is silently wrong in some cases and refuses others. The log tells
which: those ranges are read by Spark (`viewkeeper.execution.input_changes`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from viewkeeper.errors import FeedGoneError
from viewkeeper.sources.data_files import PLAIN_FEATURES
from viewkeeper.sources.delta_failures import storage_failures
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import contains_type

DRIVER_BYTES = 32 * 1024 * 1024
"""Feeds with larger files than this together are read by Spark. Reading alone is faster there from one megabyte on
(benchmarks/feed_readers.py), but what is read here limits what is read of tables, and the whole refresh gains."""


def read_feed(
    address: str,
    table: DeltaTable,
    consumed: int,
    version: int,
    columns: Sequence[Column],
    options: dict[str, str] | None,
) -> pa.Table | None:
    """The feed of an open table after one version up to another; None if it is large, or `trouble` says to let Spark read it."""
    if trouble(address, table, consumed, version, columns, options) is not None:
        return None
    with storage_failures(f"the change feed of the Delta table at {address}"):
        return pa.table(table.load_cdf(starting_version=consumed + 1, ending_version=version))


def trouble(
    address: str,
    table: DeltaTable,
    consumed: int,
    version: int,
    columns: Sequence[Column],
    options: dict[str, str] | None,
) -> str | None:
    """Why delta-rs should not read this stretch of the feed."""
    with storage_failures(f"the Delta table at {address}"):
        found = _table_trouble(table, columns)
        if found is not None:
            return found
        log = DeltaStorageHandler(address, options)
        has_timestamps = any(contains_type(column.data_type, "TIMESTAMP") for column in columns)
        size = 0
        for number in range(consumed + 1, version + 1):
            actions = list(_actions(log, address, consumed, version, number))
            files = _feed_files(actions)
            size += sum(int(file.get("size") or 0) for file in files)
            found = _commit_trouble(actions, files)
            if found is None and has_timestamps and any(_has_int96(log, file["path"]) for file in files):
                found = "its timestamps are stored as INT96"
            if found is None and size > DRIVER_BYTES:
                found = "it is large"
            if found is not None:
                return found
        return None


def estimated_rows(
    address: str, consumed: int, version: int, bytes_a_row: float, options: dict[str, str] | None
) -> int:
    """About how many rows the feed has, by what the log tells of its files."""
    with storage_failures(f"the Delta table at {address}"):
        log = DeltaStorageHandler(address, options)
        rows = 0.0
        for number in range(consumed + 1, version + 1):
            for file in _feed_files(list(_actions(log, address, consumed, version, number))):
                counted = json.loads(file.get("stats") or "{}").get("numRecords")
                rows += int(file.get("size") or 0) / bytes_a_row if counted is None else counted
        return round(rows)


def _actions(
    log: DeltaStorageHandler, address: str, consumed: int, version: int, number: int
) -> Iterator[dict[str, Any]]:
    try:
        with log.open_input_file(f"_delta_log/{number:020}.json") as stream:
            for line in stream.read().decode().splitlines():
                yield json.loads(line)
    except FileNotFoundError:
        raise FeedGoneError(
            f"the changes of the Delta table at {address} from version {consumed} to {version} are gone: "
            f"the log of version {number} was removed.",
            "recompute the view: REFRESH MATERIALIZED VIEW … FULL.",
        ) from None


def _feed_files(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files that the feed of one commit is made of."""
    written = [action["cdc"] for action in actions if "cdc" in action]
    if written:
        return written
    changed = [action.get("add") or action.get("remove") for action in actions]
    return [file for file in changed if file and file.get("dataChange")]


def _commit_trouble(actions: Sequence[dict[str, Any]], files: Sequence[dict[str, Any]]) -> str | None:
    if any("metaData" in action for action in actions):
        return "its columns or properties were changed"
    if any("%" in file["path"] for file in files):
        return "the paths of its files are escaped"
    if not any("cdc" in action for action in actions):
        for action in actions:
            file = action.get("add") or action.get("remove") or {}
            if file.get("dataChange") and file.get("deletionVector"):
                return "files with deletion vectors came or went whole"
    return None


def _table_trouble(table: DeltaTable, columns: Sequence[Column]) -> str | None:
    protocol = table.protocol()
    special = {*(protocol.reader_features or ()), *(protocol.writer_features or ())} - PLAIN_FEATURES
    if special:
        return f"it uses {', '.join(sorted(special))}"
    if any(contains_type(column.data_type, "CHAR") for column in columns):
        return "it has CHAR columns"
    if any(contains_type(column.data_type, "VARIANT") for column in columns):
        return "it has VARIANT columns"
    return None


def _has_int96(log: DeltaStorageHandler, path: str) -> bool:
    with log.open_input_file(unquote(path)) as stream:
        schema = pq.ParquetFile(stream).schema
        return any(schema.column(at).physical_type == "INT96" for at in range(len(schema.names)))
