"""A warehouse with tables and a view in its catalogue, made without Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from viewkeeper import Warehouse
from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Key, RefreshPolicy
from viewkeeper.sql.types import read_type_text
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ForeignKeyRecord, Publication, TableRecord, ViewRecord, now


class NoSpark:
    """Stands where a session would; touching it fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"this statement must not need Spark (asked for {name})")


def _columns(text: str) -> tuple[Column, ...]:
    pairs = [part.strip().split(" ", 1) for part in text.split(",")]
    return tuple(Column(name, read_type_text(data_type)) for name, data_type in pairs)


def seeded_catalogue(catalogue: Catalogue) -> Catalogue:
    """item(id, name) and line(id, item -> item, price), the view sold over both, the view totals over sold."""
    item = TableRecord(
        "item-id",
        QualifiedName("default", "item"),
        _columns("id INT, name STRING"),
        "tables/item",
        (Key(("id",), True, "item_pk"),),
    )
    line = TableRecord(
        "line-id",
        QualifiedName("default", "line"),
        _columns("id INT, item INT, price DOUBLE"),
        "tables/line",
        (Key(("id",), True, "line_pk"),),
        (ForeignKeyRecord(("item",), "item-id", ("id",), "line_item_fk"),),
        updatable=("price",),
    )
    sold = ViewRecord(
        "sold-id",
        QualifiedName("default", "sold"),
        _columns("name STRING, price DOUBLE"),
        "views/sold",
        "SELECT name, price FROM line JOIN item ON line.item = item.id",
        {QualifiedName("default", "line").key: "line-id", QualifiedName("default", "item").key: "item-id"},
        RefreshPolicy.AUTO,
    )
    totals = ViewRecord(
        "totals-id",
        QualifiedName("default", "totals"),
        _columns("name STRING, total DOUBLE"),
        "views/totals",
        "SELECT name, sum(price) AS total FROM sold GROUP BY name",
        {QualifiedName("default", "sold").key: "sold-id"},
        RefreshPolicy.AUTO,
    )
    for record in (item, line):
        catalogue = catalogue.with_table(record)
    for view in (sold, totals):
        catalogue = catalogue.with_view(view).with_publication(view.id, Publication(1, 0, {}, {}, now()))
    return catalogue


def seeded_warehouse(path: Path) -> Warehouse:
    warehouse = Warehouse(path, NoSpark())
    warehouse._workspace.state.change(seeded_catalogue)
    return warehouse


def files_of(path: Path) -> set[str]:
    return {str(Path(folder, name).relative_to(path)) for folder, _, names in os.walk(path) for name in names}
