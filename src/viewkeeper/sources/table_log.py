"""What the log of a Delta table tells: versions, columns, who committed what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from viewkeeper.sources.data_files import DataFiles
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import from_delta

HARMLESS_OPERATIONS = frozenset(
    {
        "OPTIMIZE",
        "REORG",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "ADD FEATURE",
        "COMPUTE STATS",
        "CLUSTER BY",
        "CHANGE COLUMN",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
    }
)
"""Operations that change no row. FSCK is none of them: it drops the rows of lost files."""

REPLACING_COLUMNS = ("DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS", "CREATE OR REPLACE", "REPLACE TABLE")
"""Operations after which a column of the same name may be another one; for logs that do not tell physical names."""

SETTING_COLUMNS = (*REPLACING_COLUMNS, "ADD COLUMNS", "CHANGE COLUMN", "UNKNOWN")

_MARKER = re.compile(r"viewkeeper epoch (\d+)(?:, restored version (\d+))?")


def epoch_marker(epoch: int, restored: int | None = None) -> str:
    """What our commits carry as user metadata; `restored` is the version that a RESTORE of ours brings back."""
    marker = f"viewkeeper epoch {epoch}"
    return marker if restored is None else f"{marker}, restored version {restored}"


@dataclass(frozen=True)
class Commit:
    """One commit. `epoch` is set on our own, `restored` on those that bring back an earlier version; `sets_columns` if it says
    what the columns are, the same or others."""

    version: int
    operation: str
    epoch: int | None
    restored: int | None = None
    sets_columns: bool = False

    @property
    def changes_rows(self) -> bool:
        return self.operation not in HARMLESS_OPERATIONS

    @staticmethod
    def of(
        version: int, operation: str | None, user_metadata: str | None, sets_columns: bool | None = None
    ) -> Commit:
        """
        >>> Commit.of(3, "MERGE", "viewkeeper epoch 7").epoch
        7
        >>> Commit.of(4, "RESTORE", epoch_marker(8, restored=2)).restored
        2
        """
        marked = _MARKER.fullmatch(user_metadata or "")
        epoch, restored = (
            (None if each is None else int(each) for each in marked.groups()) if marked else (None, None)
        )
        known = operation or "UNKNOWN"
        sets = known.startswith(SETTING_COLUMNS) if sets_columns is None else sets_columns
        return Commit(version, known, epoch, restored, sets)


@dataclass(frozen=True)
class TableShape:
    """`delta_id` tells a table from another one that took its place; `identities` tell a column, by its name in lower case,
    from another one that took its name."""

    columns: tuple[Column, ...]
    has_change_feed: bool
    delta_id: str
    version: int
    identities: Mapping[str, str] = field(default_factory=dict)


class TableLog(Protocol):
    """Reads the logs of Delta tables by address. A missing table raises CorruptWarehouseError."""

    def exists(self, address: str) -> bool: ...

    def version(self, address: str) -> int: ...

    def row_count(self, address: str) -> int:
        """How many rows the newest version holds."""
        ...

    def shape(self, address: str, version: int | None = None) -> TableShape:
        """What a version, or the newest one, looks like."""
        ...

    def commits_after(self, address: str, version: int) -> Sequence[Commit]:
        """The commits after a version, oldest first, without a gap.

        A commit that says nothing of itself, or whose log file is gone, has the operation UNKNOWN.
        """
        ...

    def data_files(self, address: str, version: int, columns: Sequence[Column]) -> DataFiles | None:
        """The data files of a version, if they hold its rows as they are; None if Spark must read the table as a Delta
        table."""
        ...

    def estimated_feed_rows(self, address: str, consumed: int, version: int) -> int | None:
        """About how many rows the change feed after one version up to another has; None if that is not known."""
        ...

    def read_feed(
        self, address: str, consumed: int, version: int, columns: Sequence[Column]
    ) -> pa.Table | None:
        """The change feed after one version up to another; None if Spark must read it."""
        ...

    def read_change_sets(self, address: str, epochs: Sequence[int]) -> pa.Table | None:
        """The stored change sets of a view in these epochs; None if Spark must read them."""
        ...

    def change_set_size(self, address: str, epoch: int) -> tuple[int, int] | None:
        """Rows inserted and deleted by the change set of an epoch; None if it was not written."""
        ...


def identities_of_schema(schema_json: str) -> dict[str, str]:
    """Columns that Delta stores under other, physical names, each with that name."""
    return {
        field["name"].lower(): str(physical)
        for field in json.loads(schema_json)["fields"]
        if (physical := (field.get("metadata") or {}).get("delta.columnMapping.physicalName")) is not None
    }


def columns_of_schema(schema_json: str | dict[str, Any]) -> tuple[Column, ...]:
    """The columns of a Delta (or Spark) schema in its JSON form."""
    schema = json.loads(schema_json) if isinstance(schema_json, str) else schema_json
    columns = []
    for entry in schema["fields"]:
        metadata = entry.get("metadata") or {}
        columns.append(
            Column(
                entry["name"], from_delta(entry["type"], metadata), entry["nullable"], metadata.get("comment")
            )
        )
    return tuple(columns)
