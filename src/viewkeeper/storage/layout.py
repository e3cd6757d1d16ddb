"""Where things lie in a warehouse. Folders carry ids, never names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path


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
        if text.startswith("file://"):
            text = text[len("file://") :]
        if "://" not in text:
            text = str(Path(text).expanduser().absolute())
        return Layout(text.rstrip("/") or "/")

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    @property
    def catalogue(self) -> str:
        return f"{self.root}/_viewkeeper/catalogue"

    @property
    def journal(self) -> str:
        return f"{self.root}/_viewkeeper/journal"

    def address(self, location: str) -> str:
        """The full address of a location of the catalogue."""
        return location if location.startswith("/") or "://" in location else f"{self.root}/{location}"

    def rows(self, view_location: str) -> str:
        """The table with a view's rows."""
        return f"{self.root}/{view_location}/rows"

    def changes(self, view_location: str) -> str:
        """The table with a view's change sets."""
        return f"{self.root}/{view_location}/changes"


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def table_location(storage_id: str) -> str:
    return f"tables/{storage_id}"


def view_location(storage_id: str) -> str:
    return f"views/{storage_id}"
