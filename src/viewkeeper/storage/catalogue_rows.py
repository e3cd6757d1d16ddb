"""The catalogue as rows (kind, key, body): one row an object, plain enough for any Delta reader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from viewkeeper.errors import CorruptWarehouseError, FormatVersionError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Claim, HistoryEntry, Publication, TableRecord, ViewRecord

FORMAT_VERSION = 1
"""Of catalogue and journal. A newer one is refused, not guessed at."""


class Row(NamedTuple):
    kind: str
    key: str
    body: str


def to_rows(catalogue: Catalogue) -> list[Row]:
    return list(_rows(catalogue))


def _rows(catalogue: Catalogue) -> Iterator[Row]:
    head = {
        "format": FORMAT_VERSION,
        "warehouse_id": catalogue.warehouse_id,
        "last_epoch": catalogue.last_epoch,
        "first_kept_epoch": catalogue.first_kept_epoch,
    }
    yield Row("head", "", json.dumps(head))
    for table in catalogue.tables.values():
        yield Row("table", table.id, json.dumps(table.to_json()))
    for view in catalogue.views.values():
        yield Row("view", view.id, json.dumps(view.to_json()))
    for view_id, publication in catalogue.published.items():
        yield Row("published", view_id, json.dumps(publication.to_json()))
    for claim in catalogue.claims:
        yield Row("claim", str(claim.epoch), json.dumps(claim.to_json()))
    for entry in catalogue.recent_history:
        yield Row("history", f"{entry.epoch}/{entry.view_id}", json.dumps(entry.to_json()))


def from_rows(rows: Iterable[Row]) -> Catalogue:
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    try:
        return _from_rows(by_kind)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptWarehouseError(
            f"the catalogue of the warehouse is damaged: {type(error).__name__} {error}.",
            "restore the folder _viewkeeper from a backup.",
        ) from error


def _from_rows(by_kind: dict[str, list[Row]]) -> Catalogue:
    heads = by_kind.get("head", [])
    if len(heads) != 1:
        raise ValueError(f"{len(heads)} head rows")
    head = json.loads(heads[0].body)
    if head["format"] > FORMAT_VERSION:
        raise FormatVersionError(
            f"the warehouse has format {head['format']}; this Viewkeeper knows formats up to {FORMAT_VERSION}.",
            "upgrade: pip install --upgrade viewkeeper.",
        )
    history = [HistoryEntry.from_json(json.loads(row.body)) for row in by_kind.get("history", [])]
    return Catalogue(
        head["warehouse_id"],
        head["last_epoch"],
        head["first_kept_epoch"],
        {row.key: TableRecord.from_json(json.loads(row.body)) for row in by_kind.get("table", [])},
        {row.key: ViewRecord.from_json(json.loads(row.body)) for row in by_kind.get("view", [])},
        {row.key: Publication.from_json(json.loads(row.body)) for row in by_kind.get("published", [])},
        tuple(Claim.from_json(json.loads(row.body)) for row in by_kind.get("claim", [])),
        tuple(sorted(history, key=lambda entry: (entry.epoch, entry.finished_at))),
    )
