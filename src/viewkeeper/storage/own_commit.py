"""Commits that Viewkeeper makes itself: deletion vectors for the rows that go, one file for those that come.

A commit takes effect by a file of the log that is created only if it is not there yet, so two writers cannot both
succeed, and a crash before it leaves the table as it was. Why, and which part of the Delta protocol is used, is
said in docs/decisions/0007-own-commit.md.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, ObjectStore, from_url
from pyroaring import BitMap64

from viewkeeper.sources.arrow_types import rows_at
from viewkeeper.storage.deletion_vectors import read_vector, stored_vectors
from viewkeeper.storage.file_statistics import no_longer_tight, statistics
from viewkeeper.storage.table_files import TableFiles, read_file

ENGINE = "viewkeeper"


@dataclass(frozen=True)
class Mark:
    """Whose commit it is: the Delta transaction that makes it happen once, and the epoch for whoever looks.

    `before` is called when all files are written and only the commit itself is left.
    """

    application: str
    number: int
    metadata: str
    before: Callable[[], None] = lambda: None


def open_store(address: str, options: Mapping[str, str] | None) -> ObjectStore:
    if "://" not in address:
        return LocalStore(address)
    settings: dict[str, Any] = dict(options or {})
    store: ObjectStore = from_url(address, **settings)
    return store


def overwrite(store: ObjectStore, files: TableFiles, rows: pa.Table, mark: Mark) -> bool:
    """Replace all files by one; False if somebody else has committed meanwhile."""
    actions = [_removal(add) for add in files.adds.values()]
    return _commit(store, files.version + 1, [*actions, *_new_file(store, rows)], mark)


def change(
    store: ObjectStore, files: TableFiles, removed: Mapping[str, Sequence[int]], added: pa.Table, mark: Mark
) -> bool:
    """Take rows away by file and position, and add others; False if somebody else has committed meanwhile."""
    marked: list[tuple[dict[str, Any], BitMap64]] = []
    for path, positions in removed.items():
        add = files.adds[path]
        gone = deleted_positions(store, add)
        before = len(gone)
        gone |= BitMap64(positions)
        if len(gone) != before + len(positions):
            raise ValueError(f"rows of {path} were to be deleted twice")
        if len(gone) < _rows_in(add):
            marked.append((add, gone))
    vectors = stored_vectors([gone for _, gone in marked])
    if vectors.path is not None:
        obstore.put(store, vectors.path, vectors.content, mode="create")
    actions = [_removal(files.adds[path]) for path in removed]
    for (add, _), descriptor in zip(marked, vectors.descriptors, strict=True):
        changed = {"dataChange": True, "stats": no_longer_tight(add["stats"]), "deletionVector": descriptor}
        actions.append({"add": {**add, **changed}})
    return _commit(store, files.version + 1, [*actions, *_new_file(store, added)], mark)


def deleted_positions(store: ObjectStore, add: Mapping[str, Any]) -> BitMap64:
    descriptor = add.get("deletionVector")
    return BitMap64() if descriptor is None else read_vector(descriptor, lambda path: read_file(store, path))


def read_rows(store: ObjectStore, files: TableFiles, schema: pa.Schema) -> pa.Table:
    """All live rows."""
    tables = []
    for path, add in files.adds.items():
        data = pq.read_table(pa.BufferReader(read_file(store, unquote(path))), schema=schema)
        gone = deleted_positions(store, add)
        if gone:
            data = rows_at(data, [at for at in range(data.num_rows) if at not in gone])
        tables.append(data)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _rows_in(add: Mapping[str, Any]) -> int:
    return int(json.loads(add["stats"])["numRecords"])


def _removal(add: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        key: add[key]
        for key in ("path", "partitionValues", "size", "deletionVector")
        if add.get(key) is not None
    }
    return {
        "remove": {
            **kept,
            "deletionTimestamp": _now(),
            "dataChange": True,
            "extendedFileMetadata": True,
        }
    }


def _new_file(store: ObjectStore, rows: pa.Table) -> list[dict[str, Any]]:
    if not rows.num_rows:
        return []
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="snappy", coerce_timestamps="us")
    path = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    obstore.put(store, path, buffer.getvalue(), mode="create")
    add = {
        "path": path,
        "partitionValues": {},
        "size": buffer.tell(),
        "modificationTime": _now(),
        "dataChange": True,
        "stats": statistics(rows),
    }
    return [{"add": add}]


def _commit(store: ObjectStore, version: int, actions: Sequence[dict[str, Any]], mark: Mark) -> bool:
    information = {
        "timestamp": _now(),
        "operation": "MERGE",
        "operationParameters": {},
        "readVersion": version - 1,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "userMetadata": mark.metadata,
        "engineInfo": ENGINE,
        "txnId": str(uuid.uuid4()),
    }
    transaction = {"appId": mark.application, "version": mark.number, "lastUpdated": _now()}
    lines = [{"commitInfo": information}, {"txn": transaction}, *actions]
    text = "\n".join(json.dumps(line) for line in lines) + "\n"
    mark.before()
    try:
        obstore.put(store, f"_delta_log/{version:020}.json", text.encode(), mode="create")
    except AlreadyExistsError:
        return False
    return True


def _now() -> int:
    return int(time.time() * 1000)
