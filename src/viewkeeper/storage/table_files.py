"""The live data files of a Delta table at a version, with their deletion vectors, read from its log.

Only for tables that Viewkeeper itself writes; a log of another make raises `ForeignLogError`, and whoever asked
leaves the table to Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, TypeAlias

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import ObjectStore

_COMMIT = re.compile(r"_delta_log/(\d{20})\.json$")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\.parquet$")
_KNOWN_FEATURES = {"deletionVectors", "invariants", "appendOnly"}


class ForeignLogError(Exception):
    """The log has something in it that we do not write."""


@dataclass(frozen=True)
class TableFiles:
    """The newest version of a table: the add action of every live file by path, the last number of every
    application that writes in numbered transactions."""

    version: int
    adds: dict[str, dict[str, Any]]
    transactions: dict[str, int]

    def overlapping(self, ranges: Mapping[str, tuple[Any, Any]]) -> list[str]:
        """The files that can hold a row within all of these ranges."""
        return [path for path, add in self.adds.items() if _may_hold(add, ranges)]

    @property
    def rows(self) -> int:
        """How many rows the files hold, deleted ones included."""
        return sum(
            int(json.loads(add.get("stats") or "{}").get("numRecords", 0)) for add in self.adds.values()
        )


def _may_hold(add: Mapping[str, Any], ranges: Mapping[str, tuple[Any, Any]]) -> bool:
    stats = json.loads(add.get("stats") or "{}")
    least, most = stats.get("minValues", {}), stats.get("maxValues", {})
    for name, (low, high) in ranges.items():
        if name not in least or name not in most:
            continue
        if isinstance(low, date):
            low, high = low.isoformat(), high.isoformat()
        if type(low) is type(least[name]) and (low > most[name] or high < least[name]):
            return False
    return True


def read_file(store: ObjectStore, path: str) -> bytes:
    return bytes(obstore.get(store, path).bytes())


def live_files(store: ObjectStore) -> TableFiles:
    """Replay the log, from the last checkpoint on."""
    names = [entry["path"] for batch in obstore.list(store, "_delta_log") for entry in batch]
    checkpoints = sorted(int(found[1]) for found in map(_CHECKPOINT.search, names) if found)
    commits = sorted(int(found[1]) for found in map(_COMMIT.search, names) if found)
    if not commits:
        raise ForeignLogError("there are no commits")
    state = _State({}, {})
    start = 0
    if checkpoints:
        start = checkpoints[-1] + 1
        for action in _checkpoint(store, checkpoints[-1]):
            _replay(state, action)
    wanted = [number for number in commits if number >= start]
    if wanted != list(range(start, commits[-1] + 1)):
        raise ForeignLogError("a commit is missing")
    for number in wanted:
        for line in read_file(store, f"_delta_log/{number:020}.json").decode().splitlines():
            _replay(state, json.loads(line))
    return TableFiles(commits[-1], {path: add for (path, _), add in state.adds.items()}, state.transactions)


_FileId: TypeAlias = tuple[str, str]
"""A file is known by its path together with its deletion vector: one commit may remove it with an old vector and
add it with a new one, in any order."""


def _file_id(body: dict[str, Any]) -> _FileId:
    vector = body.get("deletionVector")
    if vector is None:
        return body["path"], ""
    return body["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


class _State(NamedTuple):
    adds: dict[_FileId, dict[str, Any]]
    transactions: dict[str, int]


def _replay(state: _State, action: dict[str, Any]) -> None:
    for kind, body in action.items():
        if body is None:
            continue
        match kind:
            case "add":
                state.adds[_file_id(body)] = body
            case "remove":
                state.adds.pop(_file_id(body), None)
            case "txn":
                state.transactions[body["appId"]] = int(body["version"])
            case "protocol":
                features = {*(body.get("readerFeatures") or ()), *(body.get("writerFeatures") or ())}
                if features - _KNOWN_FEATURES:
                    raise ForeignLogError(f"it uses {', '.join(sorted(features - _KNOWN_FEATURES))}")
            case "metaData" | "commitInfo":
                continue
            case _:
                raise ForeignLogError(f"it has {kind} actions")


def _checkpoint(store: ObjectStore, version: int) -> list[dict[str, Any]]:
    data = pa.BufferReader(read_file(store, f"_delta_log/{version:020}.checkpoint.parquet"))
    table = pq.read_table(data)
    unknown = {
        "add",
        "remove",
        "metaData",
        "protocol",
        "txn",
        "domainMetadata",
        "sidecar",
        "checkpointMetadata",
    }
    if set(table.column_names) - unknown:
        raise ForeignLogError("its checkpoint is of an unknown kind")
    rows = []
    wanted = [name for name in ("add", "protocol", "txn", "sidecar") if name in table.column_names]
    for row in table.select(wanted).to_pylist():
        if row.get("sidecar"):
            raise ForeignLogError("its checkpoint has sidecar files")
        if row.get("add"):
            add = {key: value for key, value in row["add"].items() if value is not None}
            add["partitionValues"] = dict(add.get("partitionValues") or {})
            rows.append({"add": {k: v for k, v in add.items() if not k.endswith("_parsed")}})
        for kind in ("protocol", "txn"):
            if row.get(kind):
                rows.append({kind: row[kind]})
    return rows
