"""The catalogue as rows (kind, key, body): one row an object, plain enough for any Delta reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from viewkeeper.errors import CorruptWarehouseError, FormatVersionError, UserError
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Claim, HistoryEntry, Json, Publication, TableRecord, ViewRecord

FORMAT_VERSION = 1
"""Of catalogue and journal. A newer one is refused, not guessed at."""


_KINDS = ("head", "table", "view", "published", "claim", "history")
_HEAD_TYPES = {"format": int, "warehouse_id": str, "last_epoch": int, "first_kept_epoch": int}


class _HasJson(Protocol):
    def to_json(self) -> Json: ...


_Record = TypeVar("_Record", bound=_HasJson)


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
    by_kind: dict[str, list[Row]] = {kind: [] for kind in _KINDS}
    for row in rows:
        if row.kind not in by_kind:
            raise _damaged(f"it has rows of an unknown kind, {row.kind!r}")
        by_kind[row.kind].append(row)
    if len(by_kind["head"]) != 1:
        raise _damaged(f"it has {len(by_kind['head'])} head rows instead of one")
    head = _head(by_kind["head"][0])
    history = _records(by_kind["history"], HistoryEntry.from_json)
    return Catalogue(
        head["warehouse_id"],
        head["last_epoch"],
        head["first_kept_epoch"],
        _by_key(by_kind["table"], TableRecord.from_json),
        _by_key(by_kind["view"], ViewRecord.from_json),
        _by_key(by_kind["published"], Publication.from_json),
        tuple(_records(by_kind["claim"], Claim.from_json)),
        tuple(sorted(history, key=lambda entry: (entry.epoch, entry.finished_at))),
    )


def _head(row: Row) -> Json:
    with _reading(row):
        head: Json = json.loads(row.body)
        if head["format"] > FORMAT_VERSION:
            raise FormatVersionError(
                f"the warehouse has format {head['format']}; this Viewkeeper knows formats up to {FORMAT_VERSION}.",
                "upgrade: pip install --upgrade viewkeeper.",
            )
        _refuse_unknown_keys(head, _HEAD_TYPES)
        for key, expected in _HEAD_TYPES.items():
            if not isinstance(head[key], expected):
                raise ValueError(f"{key} is {head[key]!r}")
    return head


def _by_key(rows: list[Row], from_json: Callable[[Json], _Record]) -> dict[str, _Record]:
    records = dict(zip((row.key for row in rows), _records(rows, from_json), strict=True))
    if len(records) < len(rows):
        raise _damaged(f"it has several {rows[0].kind} rows for one object")
    return records


def _records(rows: list[Row], from_json: Callable[[Json], _Record]) -> list[_Record]:
    records: list[_Record] = []
    for row in rows:
        with _reading(row):
            value = json.loads(row.body)
            records.append(from_json(value))
            # The next swap would lose what is not understood.
            _refuse_unknown_keys(value, records[0].to_json().keys())
    return records


def _refuse_unknown_keys(value: Json, known: Collection[str]) -> None:
    unknown = sorted(value.keys() - known)
    if unknown:
        raise ValueError(f"unknown keys {', '.join(unknown)}")


@contextmanager
def _reading(row: Row) -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise _damaged(f"the {row.kind} row {row.key!r} has no {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise _damaged(f"the {row.kind} row {row.key!r} cannot be read ({error})") from error
    except UserError as error:  # the text of a type
        raise _damaged(f"the {row.kind} row {row.key!r} cannot be read ({error.message})") from error


def _damaged(what: str) -> CorruptWarehouseError:
    return CorruptWarehouseError(
        f"the catalogue of the warehouse is damaged: {what}.", "restore the folder _viewkeeper from a backup."
    )
