"""The logs of Delta tables through delta-rs: milliseconds, no JVM."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from viewkeeper.errors import CorruptWarehouseError
from viewkeeper.generated_names import CHANGE_EPOCH, CHANGE_KIND, INSERTED
from viewkeeper.sources.table_log import Commit, TableShape, columns_of_schema
from viewkeeper.storage.failures import storage_failures


class DeltaRsLog:
    def __init__(self, storage_options: dict[str, str] | None = None) -> None:
        self._options = storage_options

    def exists(self, address: str) -> bool:
        with storage_failures(f"the Delta table at {address}"):
            return DeltaTable.is_deltatable(address, storage_options=self._options)

    def row_count(self, address: str) -> int:
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            actions = pa.table(table.get_add_actions(flatten=True))
            return sum(count or 0 for count in actions.column("num_records").to_pylist())

    def version(self, address: str) -> int:
        return self._open(address).version()

    def shape(self, address: str) -> TableShape:
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            columns = columns_of_schema(table.schema().to_json())
            feed = table.metadata().configuration.get("delta.enableChangeDataFeed", "false")
        return TableShape(columns, feed == "true")

    def commits_after(self, address: str, version: int) -> Sequence[Commit]:
        table = self._open(address)
        missing = table.version() - version
        if missing <= 0:
            return []
        with storage_failures(f"the Delta table at {address}"):
            history = table.history(limit=missing)
        commits = [Commit.of(e["version"], e.get("operation"), e.get("userMetadata")) for e in history]
        return sorted((c for c in commits if c.version > version), key=lambda commit: commit.version)

    def change_set_size(self, address: str, epoch: int) -> tuple[int, int] | None:
        if not self.exists(address):
            return None
        table = self._open(address)
        with storage_failures(f"the Delta table at {address}"):
            actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
            mine = [action for action in actions if action[f"partition.{CHANGE_EPOCH}"] == epoch]
            if not mine and not any(c.epoch == epoch for c in self._last_commits(table)):
                return None
        inserted = sum(a["num_records"] for a in mine if a[f"partition.{CHANGE_KIND}"] == INSERTED)
        return inserted, sum(action["num_records"] for action in mine) - inserted

    def _last_commits(self, table: DeltaTable) -> list[Commit]:
        return [
            Commit.of(e["version"], e.get("operation"), e.get("userMetadata"))
            for e in table.history(limit=20)
        ]

    def _open(self, address: str) -> DeltaTable:
        try:
            with storage_failures(f"the Delta table at {address}"):
                return DeltaTable(address, storage_options=self._options)
        except TableNotFoundError:
            raise CorruptWarehouseError(
                f"there is no Delta table at {address}.",
                "check the address, or restore the folder from a backup.",
            ) from None
