"""The Delta tables of a view: its rows, and its change sets."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import field_names
from viewkeeper.storage.records import ViewRecord

_LONG = "interval 3650 days"
KEPT_HISTORY = {"delta.deletedFileRetentionDuration": _LONG, "delta.logRetentionDuration": _LONG}
"""Files and log outlive the kept epochs; VACUUM WAREHOUSE is what removes them."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def column_mapping(columns: Iterable[Column]) -> dict[str, str]:
    """Column mapping, but only where Delta can store a name only under another, physical one.

    >>> from viewkeeper.sql.types import Simple
    >>> column_mapping([Column("count(1)", Simple("INT"))])
    {'delta.columnMapping.mode': 'name'}
    >>> column_mapping([Column("größe", Simple("INT"))])
    {}
    """
    names = [name for column in columns for name in (column.name, *field_names(column.data_type))]
    return {"delta.columnMapping.mode": "name"} if any(set(name) & _NEEDS_MAPPING for name in names) else {}


def rows_properties(view: ViewRecord) -> dict[str, str]:
    return {
        **KEPT_HISTORY,
        **column_mapping(view.columns),
        "delta.enableDeletionVectors": "false" if _hides_metadata(view.columns) else "true",
        "delta.enableChangeDataFeed": "false",
    }


def _hides_metadata(columns: Iterable[Column]) -> bool:
    """Whether Delta would take a column of the view for its own: then its MERGE cannot write deletion vectors."""
    return any(column.name.lower() == "_metadata" for column in columns)


def changes_properties(view: ViewRecord) -> dict[str, str]:
    return {**KEPT_HISTORY, **column_mapping(view.columns)}
