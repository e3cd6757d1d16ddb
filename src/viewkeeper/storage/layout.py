"""Where things lie in a warehouse. Folders carry ids, never names."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from viewkeeper.errors import InvalidStatementError

_FILE_URI = re.compile(r"file:(//(localhost)?)?(?=/)")
_IMPOSSIBLE = re.compile(r"[\[\]^|\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}" + (r"|\\" if os.sep == "/" else ""))


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_REACHED_BY_DELTA_RS = {"file", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl", "hdfs"}


@dataclass(frozen=True)
class Layout:
    """The addresses inside a warehouse at `root`, a local folder (absolute) or a URI.

    >>> Layout("s3://bucket/shop").catalogue
    's3://bucket/shop/_viewkeeper/catalogue'
    """

    root: str

    @staticmethod
    def at(path_or_uri: str | Path) -> Layout:
        text = str(path_or_uri)
        file_uri = _FILE_URI.match(text)
        if file_uri is not None:
            text = unquote(text[file_uri.end() :])
        if not _SCHEME.match(text):
            text = str(Path(text).expanduser().absolute())
            _refuse_impossible_path(text)
        return Layout(text.rstrip("/") or "/")

    @property
    def is_local(self) -> bool:
        return not _SCHEME.match(self.root)

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark, through Hadoop, can reach the storage.

        >>> Layout("viewfs://cluster/shop").needs_spark, Layout("s3://bucket/shop").needs_spark
        (True, False)
        """
        return not self.is_local and self.root.split(":")[0].lower() not in _REACHED_BY_DELTA_RS

    @property
    def catalogue(self) -> str:
        return f"{self.root}/_viewkeeper/catalogue"

    @property
    def journal(self) -> str:
        return f"{self.root}/_viewkeeper/journal"

    def address(self, location: str) -> str:
        """The full address of a location of the catalogue."""
        return location if location.startswith("/") or _SCHEME.match(location) else f"{self.root}/{location}"

    def rows(self, view_location: str) -> str:
        """The table with a view's rows."""
        return f"{self.root}/{view_location}/rows"

    def changes(self, view_location: str) -> str:
        """The table with a view's change sets."""
        return f"{self.root}/{view_location}/changes"


def _refuse_impossible_path(path: str) -> None:
    """delta-rs writes tables into such folders, and then cannot read them."""
    found = _IMPOSSIBLE.search(path)
    if found is not None:
        raise InvalidStatementError(
            f"the path {path!r} has {found[0]!r} in it; Delta tables cannot lie there.",
            "choose another folder.",
        )


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def table_location(storage_id: str) -> str:
    return f"tables/{storage_id}"


def view_location(storage_id: str) -> str:
    return f"views/{storage_id}"


def kept_location(owner_location: str, number: int) -> str:
    """Where a hidden view lies: in its owner's folder, so that it comes and goes with it."""
    return f"{owner_location}/groups_{number}"
