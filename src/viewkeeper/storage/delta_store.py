"""The catalogue and the journal as Delta tables, read and written by delta-rs: milliseconds, no JVM.

The catalogue is small and written whole. A write names the version it was derived from and is refused when
another writer was faster (delta-rs would otherwise retry), so changes are serialised without any lock. The
journal takes the older history entries, in batches, so that neither table grows with the number of epochs in
what a reader must open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from viewkeeper.errors import ConcurrencyProblem, NotAWarehouseError
from viewkeeper.sources.delta_failures import storage_failure, storage_failures
from viewkeeper.sources.newest_commit import NewestCommit, newest_commit
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.catalogue_rows import Row, from_rows, to_rows
from viewkeeper.storage.layout import Layout
from viewkeeper.storage.records import HistoryEntry

_CATALOGUE_SCHEMA = pa.schema([("kind", pa.string()), ("key", pa.string()), ("body", pa.string())])
_JOURNAL_SCHEMA = pa.schema([("epoch", pa.int64()), ("view_id", pa.string()), ("body", pa.string())])
_KEPT_HOURS = 1
"""Files that a swap or a fold replaced stay for readers that have just begun."""

_PROPERTIES = {
    "delta.logRetentionDuration": f"interval {_KEPT_HOURS} hours",
    "delta.deletedFileRetentionDuration": f"interval {_KEPT_HOURS} hours",
    "delta.checkpointInterval": "50",
}
_NO_RETRY = CommitProperties(max_commit_retries=0)
_JOURNAL_FILES = 40
"""More files than this in the journal are folded into one."""


class DeltaStore:
    """Reads and swaps the catalogue; appends to and searches the journal."""

    def __init__(self, layout: Layout, storage_options: dict[str, str] | None = None) -> None:
        self._layout = layout
        self._options = storage_options
        self._known: tuple[NewestCommit, Catalogue, int] | None = None

    def exists(self) -> bool:
        with storage_failures("the warehouse"):
            return DeltaTable.is_deltatable(self._layout.catalogue, storage_options=self._options)

    def create(self, catalogue: Catalogue) -> None:
        """Create the catalogue, unless another process was faster."""
        with storage_failures("the catalogue of the warehouse"):
            if self._layout.is_local:
                Path(self._layout.catalogue).mkdir(parents=True, exist_ok=True)
            self._create_table(self._layout.catalogue, _as_arrow(catalogue), "the catalogue of the warehouse")

    def read(self) -> tuple[Catalogue, int]:
        """The catalogue and the version to name when it is swapped; as it was read before, if nobody has changed it since."""
        newest = newest_commit(self._layout.catalogue)
        if newest is not None and self._known is not None and self._known[0] == newest:
            return self._known[1:]
        table = self._open_catalogue()
        with storage_failures("the catalogue of the warehouse"):
            rows = [Row(*values) for values in _read_columns(table, Row._fields)]
        catalogue = from_rows(rows)
        self._known = None if newest is None else (newest, catalogue, table.version())
        return catalogue, table.version()

    def swap(self, catalogue: Catalogue, expected_version: int) -> bool:
        """Write the catalogue if it still is at the expected version; False if it is not."""
        data = _as_arrow(catalogue)
        table = self._open_catalogue()
        if table.version() != expected_version:
            return False
        with storage_failures("the catalogue of the warehouse"):
            try:
                write_deltalake(table, data, mode="overwrite", commit_properties=_NO_RETRY)
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
        what = "the journal of the warehouse"
        with storage_failures(what):
            journal = self._layout.journal
            if not DeltaTable.is_deltatable(journal, storage_options=self._options) and self._create_table(
                journal, data, what
            ):
                return
            try:
                write_deltalake(journal, data, mode="append", storage_options=self._options)
            except CommitFailedError as error:
                raise ConcurrencyProblem(
                    f"{what} is changed by others all the time; this change found no gap.",
                    "repeat the statement.",
                ) from error

    def fold(self) -> None:
        """Keep both tables small: few journal files, none that nobody reads any more.

        Two processes may fold at once; the slower one's commit fails, and there is nothing left to do for it.
        """
        with storage_failures("the journal of the warehouse"), suppress(CommitFailedError):
            journal = DeltaTable(self._layout.journal, storage_options=self._options)
            if len(journal.file_uris()) > _JOURNAL_FILES:
                journal.optimize.compact()
                _remove_unread_files(journal)
            _remove_unread_files(self._open_catalogue())

    def archived_history(self, view_id: str | None = None, last: int | None = None) -> list[HistoryEntry]:
        """Entries of the journal by epoch, each once; of one view, and only the last so many, if asked.

        The epoch of the first of the last ones is given whole: which of its entries are the last is not known
        before they are read.
        """
        try:
            with storage_failures("the journal of the warehouse"):
                journal = DeltaTable(self._layout.journal, storage_options=self._options)
                rows = list(_read_columns(journal, _JOURNAL_SCHEMA.names))
                bodies = {(epoch, view): body for epoch, view, body in rows if view_id in (None, view)}
                epochs = sorted(epoch for epoch, _ in bodies)
                first = epochs[-last] if last and last < len(epochs) else 0
                return [
                    HistoryEntry.from_json(json.loads(bodies[key]))
                    for key in sorted(bodies, key=itemgetter(0))
                    if key[0] >= first and last != 0
                ]
        except TableNotFoundError:
            return []

    def _create_table(self, address: str, data: pa.Table, what: str) -> bool:
        """Create a table with its first rows; False if another process was faster.

        That is one commit, never retried: delta-rs would retry it as a second one, and two tables in one would be
        the end of it. So exactly one of several creators succeeds, and no reader sees a table without rows.
        """
        try:
            write_deltalake(
                address,
                data,
                mode="error",
                configuration=_PROPERTIES,
                storage_options=self._options,
                commit_properties=_NO_RETRY,
            )
        except DeltaError as error:
            if not DeltaTable.is_deltatable(address, storage_options=self._options):
                raise storage_failure(error, what) from error
            return False
        return True

    def _open_catalogue(self) -> DeltaTable:
        try:
            with storage_failures("the catalogue of the warehouse"):
                return DeltaTable(self._layout.catalogue, storage_options=self._options)
        except TableNotFoundError:
            raise NotAWarehouseError(
                f"{self._layout.root} is no Viewkeeper warehouse.",
                "check the path, or create a warehouse with viewkeeper init.",
            ) from None


def _as_arrow(catalogue: Catalogue) -> pa.Table:
    rows = to_rows(catalogue)
    return pa.table(
        {name: [row[at] for row in rows] for at, name in enumerate(Row._fields)}, schema=_CATALOGUE_SCHEMA
    )


def _read_columns(table: DeltaTable, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table. Not by `to_pyarrow_table`: its threads now and then abort Python when it exits."""
    data = pa.table(table.scan(columns=list(columns)))
    return zip(*(data.column(name).to_pylist() for name in columns), strict=True)


def _remove_unread_files(table: DeltaTable) -> None:
    table.vacuum(retention_hours=_KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
