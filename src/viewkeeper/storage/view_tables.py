"""The Delta tables of a view: its rows, and its change sets."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.storage.records import ViewRecord

_LONG = "interval 3650 days"
KEPT_HISTORY = {"delta.deletedFileRetentionDuration": _LONG, "delta.logRetentionDuration": _LONG}
"""Files and log outlive the kept epochs; VACUUM WAREHOUSE is what removes them."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def needs_column_mapping(names: Iterable[str]) -> bool:
    """Whether Delta can store these column names only under other, physical names.

    >>> needs_column_mapping(["count(1)"]), needs_column_mapping(["größe"])
    (True, False)
    """
    return any(set(name) & _NEEDS_MAPPING for name in names)


def column_mapping(names: Iterable[str]) -> dict[str, str]:
    return {"delta.columnMapping.mode": "name"} if needs_column_mapping(names) else {}


def rows_properties(view: ViewRecord) -> dict[str, str]:
    return {
        **KEPT_HISTORY,
        **column_mapping(column.name for column in view.columns),
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "false",
    }


def changes_properties(view: ViewRecord) -> dict[str, str]:
    return {**KEPT_HISTORY, **column_mapping(column.name for column in view.columns)}
