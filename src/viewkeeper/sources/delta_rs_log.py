"""The logs of Delta tables through delta-rs: milliseconds, no JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from viewkeeper.errors import CorruptWarehouseError
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, INSERTED
from viewkeeper.sources import change_feed, data_files
from viewkeeper.sources.data_files import DataFiles, rows_python_holds
from viewkeeper.sources.delta_failures import storage_failures
from viewkeeper.sources.newest_commit import NewestCommit, newest_commit
from viewkeeper.sources.table_log import Commit, TableShape, columns_of_schema, identities_of_schema
from viewkeeper.sql.binding import Column

_MOST_OPENED = 100
_COUNT = "SELECT COUNT(*) AS rows FROM counted"


class DeltaRsLog:
    def __init__(self, storage_options: dict[str, str] | None = None) -> None:
        self._options = storage_options
        self._opened: dict[str, tuple[NewestCommit, DeltaTable]] = {}
        self._opening = threading.Lock()

    def exists(self, address: str) -> bool:
        with storage_failures(f"the Delta table at {address}"):
            return DeltaTable.is_deltatable(address, storage_options=self._options)

    def row_count(self, address: str) -> int:
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            try:
                counted = QueryBuilder().register("counted", table).execute(_COUNT)
                return int(pa.table(counted).column("rows")[0].as_py())
            except Exception:  # delta-rs does not read every table; its log tells how many rows were written
                files = pa.table(table.get_add_actions())
                return int(pc.sum(files.column("num_records")).as_py() or 0)

    def version(self, address: str) -> int:
        return self._open(address).version()

    def shape(self, address: str, version: int | None = None) -> TableShape:
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            if version is not None and version != table.version():
                table = self._open_anew(address, version)
            schema = table.schema().to_json()
            metadata = table.metadata()
            feed = metadata.configuration.get("delta.enableChangeDataFeed", "false")
        return TableShape(
            columns_of_schema(schema),
            feed.lower() == "true",
            str(metadata.id),
            table.version(),
            identities_of_schema(schema),
        )

    def commits_after(self, address: str, version: int) -> Sequence[Commit]:
        table = self._open(address)
        return self._commits(address, version + 1, table.version())

    def data_files(self, address: str, version: int, columns: Sequence[Column]) -> DataFiles | None:
        try:
            return data_files.data_files(address, version, columns, self._options)
        except (CorruptWarehouseError, TableNotFoundError):
            return None

    def estimated_feed_rows(self, address: str, consumed: int, version: int) -> int | None:
        with storage_failures(f"the Delta table at {address}"):
            files = pa.table(self._open(address).get_add_actions())
        rows = pc.sum(files.column("num_records")).as_py()
        if not rows:
            return None
        bytes_a_row = pc.sum(files.column("size_bytes")).as_py() / rows
        return change_feed.estimated_rows(address, consumed, version, bytes_a_row, self._options)

    def read_feed(
        self, address: str, consumed: int, version: int, columns: Sequence[Column]
    ) -> pa.Table | None:
        try:
            return change_feed.read_feed(
                address, self._open(address), consumed, version, columns, self._options
            )
        except CorruptWarehouseError:  # Spark reads more than delta-rs does, or says what is wrong
            return None

    def read_change_sets(self, address: str, epochs: Sequence[int]) -> pa.Table | None:
        try:
            return self._read_change_sets(address, epochs)
        except CorruptWarehouseError:
            return None

    def _read_change_sets(self, address: str, epochs: Sequence[int]) -> pa.Table | None:
        table = self._open(address)
        with storage_failures(f"the change sets at {address}"):
            if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
                return None
            actions = rows_python_holds(pa.table(table.get_add_actions(flatten=True)))
            mine = [action for action in actions if action[f"partition.{CHANGE_EPOCH}"] in set(epochs)]
            if sum(action["size_bytes"] for action in mine) > change_feed.DRIVER_BYTES:
                return None
            wanted = ", ".join(str(int(epoch)) for epoch in epochs)
            return pa.table(table.scan(predicate=f"{CHANGE_EPOCH} IN ({wanted})"))

    def change_set_size(self, address: str, epoch: int) -> tuple[int, int] | None:
        if not self.exists(address):
            return None
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            actions = rows_python_holds(pa.table(table.get_add_actions(flatten=True)))
            mine = [action for action in actions if action[f"partition.{CHANGE_EPOCH}"] == epoch]
            if any(action["num_records"] is None for action in mine):
                return self._counted_change_set(table, epoch)
        last = table.version()
        if not mine and not any(c.epoch == epoch for c in self._commits(address, last - 19, last)):
            return None
        inserted = sum(a["num_records"] for a in mine if a[f"partition.{CHANGE_KIND}"] == INSERTED)
        return inserted, sum(action["num_records"] for action in mine) - inserted

    def _counted_change_set(self, table: DeltaTable, epoch: int) -> tuple[int, int]:
        """For change sets written in a session that collects no statistics."""
        changes = pa.table(table.scan([CHANGE_KIND], f"{CHANGE_EPOCH} = {epoch:d}"))
        kinds = changes.column(CHANGE_KIND).to_pylist()
        return kinds.count(INSERTED), len(kinds) - kinds.count(INSERTED)

    def _commits(self, address: str, first: int, last: int) -> list[Commit]:
        """The commits from one version to another, read from the log.

        Not by `DeltaTable.history`: it only counts backwards from the version it was opened at, so that every
        commit without commitInfo, and every commit made meanwhile, gives all older ones a wrong version.
        """
        with storage_failures(f"the Delta table at {address}"):
            log = DeltaStorageHandler(address, self._options)
            return [_read_commit(log, version) for version in range(max(first, 0), last + 1)]

    def _open(self, address: str) -> DeltaTable:
        """The table at its newest version; as it was opened before, if nobody has committed since."""
        newest = newest_commit(address)
        with self._opening:
            known = self._opened.pop(address, None)
        table = known[1] if known is not None and known[0] == newest else self._open_anew(address)
        if newest is not None:
            with self._opening:
                self._opened[address] = newest, table
                if len(self._opened) > _MOST_OPENED:
                    del self._opened[next(iter(self._opened))]
        return table

    def _open_anew(self, address: str, version: int | None = None) -> DeltaTable:
        try:
            with storage_failures(f"the Delta table at {address}"):
                return DeltaTable(address, version=version, storage_options=self._options)
        except TableNotFoundError:
            if version is not None:
                raise CorruptWarehouseError(
                    f"the log of the Delta table at {address} no longer has version {version}.",
                    "restore the folder from a backup.",
                ) from None
            raise CorruptWarehouseError(
                f"there is no Delta table at {address}.",
                "check the address, or restore the folder from a backup.",
            ) from None


def _read_commit(log: DeltaStorageHandler, version: int) -> Commit:
    try:
        with log.open_input_file(f"_delta_log/{version:020}.json") as stream:
            lines = stream.read().decode().splitlines()
    except FileNotFoundError:
        return Commit.of(version, None, None)
    wanted = ('"commitInfo"', '"metaData"')
    actions = [json.loads(line) for line in lines if any(each in line for each in wanted)]
    information: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    return Commit.of(
        version,
        information.get("operation"),
        information.get("userMetadata"),
        any("metaData" in action for action in actions),
    )
