"""The catalogue and the journal as Delta tables, read and written by delta-rs: milliseconds, no JVM.

The catalogue is small and written whole. A write names the version it was derived from and is refused when
another writer was faster (delta-rs would otherwise retry), so changes are serialised without any lock. The
journal takes the older history entries, in batches, so that neither table grows with the number of epochs in
what a reader must open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from viewkeeper.errors import NotAWarehouseError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.catalogue_rows import Row, from_rows, to_rows
from viewkeeper.storage.failures import storage_failure, storage_failures
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry

_CATALOGUE_SCHEMA = pa.schema([("kind", pa.string()), ("key", pa.string()), ("body", pa.string())])
_JOURNAL_SCHEMA = pa.schema([("epoch", pa.int64()), ("view_id", pa.string()), ("body", pa.string())])
_CATALOGUE_PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.checkpointInterval": "50",
}
_JOURNAL_FILES = 40
"""More files than this in the journal are folded into one."""


class DeltaStore:
    """Reads and swaps the catalogue; appends to and searches the journal."""

    def __init__(self, layout: Layout, storage_options: dict[str, str] | None = None) -> None:
        self._layout = layout
        self._options = storage_options

    def exists(self) -> bool:
        with storage_failures("the warehouse"):
            return DeltaTable.is_deltatable(self._layout.catalogue, storage_options=self._options)

    def create(self, catalogue: Catalogue) -> None:
        """Create the catalogue, unless another process was faster."""
        with storage_failures("the catalogue of the warehouse"):
            if self._layout.is_local:
                Path(self._layout.catalogue).mkdir(parents=True, exist_ok=True)
            table = DeltaTable.create(
                self._layout.catalogue,
                _CATALOGUE_SCHEMA,
                mode="ignore",
                configuration=_CATALOGUE_PROPERTIES,
                storage_options=self._options,
            )
            if table.version() == 0:
                self.swap(catalogue, 0)

    def read(self) -> tuple[Catalogue, int]:
        """The catalogue and the version to name when it is swapped."""
        try:
            with storage_failures("the catalogue of the warehouse"):
                table = DeltaTable(self._layout.catalogue, storage_options=self._options)
                data = table.to_pyarrow_table(columns=["kind", "key", "body"])
        except TableNotFoundError:
            raise NotAWarehouseError(
                f"{self._layout.root} is no Viewkeeper warehouse.",
                "check the path, or create a warehouse with viewkeeper init.",
            ) from None
        columns = (data.column(name).to_pylist() for name in ("kind", "key", "body"))
        return from_rows(Row(*values) for values in zip(*columns, strict=True)), table.version()

    def swap(self, catalogue: Catalogue, expected_version: int) -> bool:
        """Write the catalogue if it still is at the expected version; False if it is not."""
        rows = to_rows(catalogue)
        data = pa.table(
            {name: [row[at] for row in rows] for at, name in enumerate(Row._fields)}, schema=_CATALOGUE_SCHEMA
        )
        with storage_failures("the catalogue of the warehouse"):
            table = DeltaTable(self._layout.catalogue, storage_options=self._options)
            if table.version() != expected_version:
                return False
            try:
                write_deltalake(
                    table, data, mode="overwrite", commit_properties=CommitProperties(max_commit_retries=0)
                )
            except CommitFailedError as error:
                if "commit transaction" not in str(error).lower() and "conflict" not in str(error).lower():
                    raise storage_failure(error, "the catalogue of the warehouse") from error
                return False
        return True

    def append_history(self, entries: Iterable[HistoryEntry]) -> None:
        """Move entries to the journal. An entry may get there twice; readers take one of each."""
        rows = [(entry.epoch, entry.view_id, json.dumps(entry.to_json())) for entry in entries]
        data = pa.table(
            {name: [row[at] for row in rows] for at, name in enumerate(_JOURNAL_SCHEMA.names)},
            schema=_JOURNAL_SCHEMA,
        )
        with storage_failures("the journal of the warehouse"):
            write_deltalake(self._layout.journal, data, mode="append", storage_options=self._options)

    def fold(self) -> None:
        """Keep both tables small: few journal files, no catalogue files that nobody reads any more."""
        with storage_failures("the journal of the warehouse"):
            journal = DeltaTable(self._layout.journal, storage_options=self._options)
            if len(journal.file_uris()) > _JOURNAL_FILES:
                try:
                    journal.optimize.compact()
                except CommitFailedError:
                    return
            catalogue = DeltaTable(self._layout.catalogue, storage_options=self._options)
            catalogue.vacuum(retention_hours=1, dry_run=False, enforce_retention_duration=False)

    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        """Entries of the journal, oldest first; of one view, and only the last so many, if asked."""
        try:
            with storage_failures("the journal of the warehouse"):
                journal = DeltaTable(self._layout.journal, storage_options=self._options)
                filters = None if view_id is None else [("view_id", "=", view_id)]
                data = journal.to_pyarrow_table(filters=filters)
        except TableNotFoundError:
            return []
        data = data.sort_by("epoch")
        if last is not None and last < data.num_rows:
            data = data.slice(data.num_rows - last)
        return [HistoryEntry.from_json(json.loads(body)) for body in data.column("body").to_pylist()]
