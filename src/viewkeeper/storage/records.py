"""What the catalogue and the journal hold: frozen records with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeAlias

from viewkeeper.sql.binding import Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Key, RefreshPolicy
from viewkeeper.sql.types import read_type_text

Json: TypeAlias = dict[str, Any]

LAYOUT_VERSION = 1
"""How a view's table is laid out: visible columns, hidden columns, the copy number."""


LONG_AGO = "1970-01-01T00:00:00+00:00"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class ForeignKeyRecord:
    """A declared foreign key; the parent is known by its id, so renaming does no harm."""

    columns: tuple[str, ...]
    parent_id: str
    parent_columns: tuple[str, ...]
    name: str
    rely: bool = False


@dataclass(frozen=True)
class TableRecord:
    """A base table. `location` is a folder of the warehouse, or a full address where `attached`.

    `delta_id` is the identity of an attached Delta table: another table at the same address is noticed.
    `distrusted` names constraints that were found violated.
    """

    id: str
    name: QualifiedName
    columns: tuple[Column, ...]
    location: str
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKeyRecord, ...] = ()
    updatable: tuple[str, ...] | None = None
    append_only: bool = False
    attached: bool = False
    catalogue_name: str | None = None
    comment: str | None = None
    delta_id: str | None = None
    distrusted: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {
            **_name_and_columns(self),
            "keys": [vars(key) for key in self.keys],
            "foreign_keys": [vars(foreign_key) for foreign_key in self.foreign_keys],
            "updatable": self.updatable,
            "append_only": self.append_only,
            "attached": self.attached,
            "catalogue_name": self.catalogue_name,
            "delta_id": self.delta_id,
            "distrusted": self.distrusted,
        }

    @staticmethod
    def from_json(value: Json) -> TableRecord:
        return TableRecord(
            value["id"],
            QualifiedName(*value["name"]),
            _columns(value["columns"]),
            value["location"],
            tuple(Key(tuple(k["columns"]), k["primary"], k["name"], k["rely"]) for k in value["keys"]),
            tuple(
                ForeignKeyRecord(
                    tuple(f["columns"]), f["parent_id"], tuple(f["parent_columns"]), f["name"], f["rely"]
                )
                for f in value["foreign_keys"]
            ),
            None if value["updatable"] is None else tuple(value["updatable"]),
            value["append_only"],
            value["attached"],
            value["catalogue_name"],
            value["comment"],
            value["delta_id"],
            tuple(value["distrusted"]),
        )


@dataclass(frozen=True)
class OverKept:
    """A view's query over the hidden views that keep groups inside it, and the ids that its names mean."""

    query: str
    references: Mapping[str, str]


@dataclass(frozen=True)
class ViewRecord:
    """A materialized view.

    `references` says which object each name in the query meant when the view was created; `settings` are
    the session settings that can change the query's result, applied again at every refresh; `hidden` are the
    columns that its table keeps beside the visible ones and the copy number.

    A view with an `owner` is itself hidden: it keeps groups inside the owner's query, lies in the owner's folder, and
    lives and dies with it.
    """

    id: str
    name: QualifiedName
    columns: tuple[Column, ...]
    location: str
    query: str
    references: Mapping[str, str]
    policy: RefreshPolicy
    settings: Mapping[str, str] = field(default_factory=dict)
    layout_version: int = LAYOUT_VERSION
    comment: str | None = None
    hidden: tuple[Column, ...] = ()
    goes_on_after_violation: bool = False
    rematerialized_on: tuple[tuple[str, str], ...] = ()
    """Operations with the ids of tables, after which the whole query is evaluated."""
    owner: str | None = None
    over_kept: OverKept | None = None
    """What refreshes evaluate in place of the query, if groups inside it are kept."""
    about_groups: tuple[str, ...] = ()
    """Which groups inside the query are kept and which are not, with the reasons, in sentences."""
    refusal: str | None = None
    """Why our reading of the query is not used, as CREATE found out by asking Spark."""

    @property
    def named_ids(self) -> tuple[str, ...]:
        """The objects that the user's query names."""
        return tuple(dict.fromkeys(self.references.values()))

    @property
    def input_ids(self) -> tuple[str, ...]:
        """The objects from which a refresh makes the view."""
        read = self if self.over_kept is None else self.over_kept
        return tuple(dict.fromkeys(read.references.values()))

    def to_json(self) -> Json:
        return {
            **_name_and_columns(self),
            "query": self.query,
            "references": dict(self.references),
            "policy": self.policy.value,
            "settings": dict(self.settings),
            "layout_version": self.layout_version,
            "hidden": _columns_to_json(self.hidden),
            "goes_on_after_violation": self.goes_on_after_violation,
            "rematerialized_on": [list(each) for each in self.rematerialized_on],
            "owner": self.owner,
            "over_kept": None if self.over_kept is None else vars(self.over_kept),
            "about_groups": list(self.about_groups),
            "refusal": self.refusal,
        }

    @staticmethod
    def from_json(value: Json) -> ViewRecord:
        return ViewRecord(
            value["id"],
            QualifiedName(*value["name"]),
            _columns(value["columns"]),
            value["location"],
            value["query"],
            value["references"],
            RefreshPolicy(value["policy"]),
            value["settings"],
            value["layout_version"],
            value["comment"],
            _columns(value["hidden"]),
            value["goes_on_after_violation"],
            tuple((operation, table) for operation, table in value["rematerialized_on"]),
            value["owner"],
            None if value["over_kept"] is None else OverKept(**value["over_kept"]),
            tuple(value["about_groups"]),
            value.get("refusal"),
        )


def _name_and_columns(record: TableRecord | ViewRecord) -> Json:
    return {
        "id": record.id,
        "name": [record.name.schema, record.name.name],
        "columns": _columns_to_json(record.columns),
        "location": record.location,
        "comment": record.comment,
    }


def _columns_to_json(columns: tuple[Column, ...]) -> list[Json]:
    return [
        {"name": c.name, "type": str(c.data_type), "nullable": c.nullable, "comment": c.comment}
        for c in columns
    ]


def _columns(values: list[Json]) -> tuple[Column, ...]:
    return tuple(Column(v["name"], read_type_text(v["type"]), v["nullable"], v["comment"]) for v in values)


@dataclass(frozen=True)
class Publication:
    """What readers of a view see: the epoch, the version of its table, and what it was made from.

    `inputs` are the versions of the tables and views the query names and of hidden views below it, `sources` those of
    all base tables below, through other views too; `verified` are constraints, by table and by what they say, that hold at these
    versions.
    `corrections` are by how much refreshes by each strategy took longer than predicted.
    """

    epoch: int
    version: int
    inputs: Mapping[str, int]
    sources: Mapping[str, int]
    published_at: str
    verified: tuple[tuple[str, str], ...] = ()
    corrections: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> Json:
        mappings = {
            "inputs": dict(self.inputs),
            "sources": dict(self.sources),
            "corrections": dict(self.corrections),
        }
        return {**vars(self), **mappings}

    @staticmethod
    def from_json(value: Json) -> Publication:
        return Publication(**{**value, "verified": tuple((table, name) for table, name in value["verified"])})


@dataclass(frozen=True)
class Holder:
    """The process that works on an epoch."""

    host: str
    machine: str
    pid: int
    started: str
    token: str
    user: str

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid >= 0 else "a process that stopped"
        return f"{who} of {self.user} on {self.host}"


@dataclass(frozen=True)
class Claim:
    """An epoch under way: who works on which views, from which pinned versions.

    `loads` marks the first load of a view that is not in the catalogue yet, `restores` that views are put back to what they
    publish: nobody finishes either for a dead process, its user repeats the statement. `tries` counts the processes that
    have worked on the epoch, `last_error` is what the last of them stopped with.
    """

    epoch: int
    views: tuple[str, ...]
    pins: Mapping[str, int]
    bases: Mapping[str, int]
    holder: Holder
    claimed_at: str
    renewed_at: str
    loads: str | None = None
    restores: bool = False
    tries: int = 1
    last_error: str | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether another process can finish it."""
        return self.loads is None and not self.restores

    def to_json(self) -> Json:
        return {**vars(self), "pins": dict(self.pins), "bases": dict(self.bases), "holder": vars(self.holder)}

    @staticmethod
    def from_json(value: Json) -> Claim:
        return Claim(**{**value, "views": tuple(value["views"]), "holder": Holder(**value["holder"])})


@dataclass(frozen=True)
class HistoryEntry:
    """What one epoch did to one view. `outcome` is published or failed; `owner` is set for a hidden view."""

    epoch: int
    view_id: str
    view: str
    outcome: str
    strategy: str
    reason: str
    inserted: int
    deleted: int
    seconds: float
    steps: tuple[tuple[str, float], ...]
    sources: Mapping[str, int]
    version: int | None
    location: str
    finished_at: str
    error: str | None = None
    predicted: float | None = None
    """What the refresh was predicted to take, in seconds, before it was corrected by the past."""
    owner: str | None = None
    fallback: str | None = None
    """What the incremental plan failed with, if the view was recomputed for that reason."""

    def to_json(self) -> Json:
        return {**vars(self), "steps": [list(step) for step in self.steps], "sources": dict(self.sources)}

    @staticmethod
    def from_json(value: Json) -> HistoryEntry:
        return HistoryEntry(**{**value, "steps": tuple((name, seconds) for name, seconds in value["steps"])})
