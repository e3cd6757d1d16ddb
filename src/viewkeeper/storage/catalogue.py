"""The state of a warehouse as one immutable value, and the changes it can go through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from viewkeeper.sql.names import QualifiedName
from viewkeeper.storage.records import Claim, HistoryEntry, Publication, TableRecord, ViewRecord

ObjectRecord: TypeAlias = TableRecord | ViewRecord
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Catalogue:
    """Everything a warehouse knows: objects, what is published, who is at work, recent history.

    `first_kept_epoch` is the oldest epoch that VACUUM left readable.
    """

    warehouse_id: str
    last_epoch: int = 0
    first_kept_epoch: int = 0
    tables: Mapping[str, TableRecord] = field(default_factory=dict)
    views: Mapping[str, ViewRecord] = field(default_factory=dict)
    published: Mapping[str, Publication] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    recent_history: tuple[HistoryEntry, ...] = ()

    # -- looking things up

    def object(self, object_id: str) -> ObjectRecord:
        return self.tables[object_id] if object_id in self.tables else self.views[object_id]

    def objects(self) -> Iterator[ObjectRecord]:
        yield from self.tables.values()
        yield from self.views.values()

    def users_views(self) -> list[ViewRecord]:
        """The views that users created, by name."""
        return sorted(
            (view for view in self.views.values() if view.owner is None), key=lambda view: view.name
        )

    def kept_by(self, view_id: str) -> list[ViewRecord]:
        """The hidden views that keep groups inside a view's query, each after those that it reads."""
        return [view for view in self.views_below([view_id]) if view.owner == view_id]

    def users_objects(self) -> Iterator[ObjectRecord]:
        """Tables and views that have a name for users."""
        yield from self.tables.values()
        yield from self.users_views()

    def named(self, name: QualifiedName) -> ObjectRecord | None:
        return next((record for record in self.users_objects() if record.name.key == name.key), None)

    def names(self) -> list[str]:
        return sorted(str(record.name) for record in self.users_objects())

    def readers_of(self, object_id: str) -> list[ViewRecord]:
        """The users' views whose query names the object."""
        return [view for view in self.users_views() if object_id in view.named_ids]

    def children_of(self, table_id: str) -> list[TableRecord]:
        """The tables with a foreign key to the table."""
        return [
            table
            for table in self.tables.values()
            if table.id != table_id and any(key.parent_id == table_id for key in table.foreign_keys)
        ]

    def views_below(self, view_ids: Iterable[str]) -> list[ViewRecord]:
        """These views and all views they read, each after the ones it reads; without those dropped meanwhile."""
        ordered: dict[str, ViewRecord] = {}

        def visit(view_id: str) -> None:
            if view_id in ordered or view_id not in self.views:
                return
            for input_id in self.views[view_id].input_ids:
                visit(input_id)
            ordered[view_id] = self.views[view_id]

        known = (view_id for view_id in view_ids if view_id in self.views)
        for view_id in sorted(known, key=lambda key: self.views[key].name):
            visit(view_id)
        return list(ordered.values())

    def tables_below(self, input_ids: Iterable[str]) -> set[str]:
        """The base tables that these objects are made from, through views too."""
        tables: set[str] = set()
        views: set[str] = set()
        open_ids = list(input_ids)
        while open_ids:
            object_id = open_ids.pop()
            if object_id in self.tables:
                tables.add(object_id)
            elif object_id not in views:
                views.add(object_id)
                open_ids.extend(self.views[object_id].input_ids)
        return tables

    def claim_on(self, view_ids: Iterable[str]) -> Claim | None:
        wanted = set(view_ids)
        return next((claim for claim in self.claims if wanted & set(claim.views)), None)

    def claim_with(self, token: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.holder.token == token), None)

    # -- changing it; each returns a new value

    def with_table(self, table: TableRecord) -> Catalogue:
        return replace(self, tables={**self.tables, table.id: table})

    def with_view(self, view: ViewRecord) -> Catalogue:
        return replace(self, views={**self.views, view.id: view})

    def without(self, object_id: str) -> Catalogue:
        """Without a table, or a view and the hidden views that are its own."""
        gone = {object_id, *(view.id for view in self.views.values() if view.owner == object_id)}
        return replace(
            self,
            tables=_without(self.tables, gone),
            views=_without(self.views, gone),
            published=_without(self.published, gone),
        )

    def with_claim(self, claim: Claim) -> Catalogue:
        others = tuple(other for other in self.claims if other.epoch != claim.epoch)
        return replace(self, claims=(*others, claim), last_epoch=max(self.last_epoch, claim.epoch))

    def without_claim(self, epoch: int) -> Catalogue:
        return replace(self, claims=tuple(claim for claim in self.claims if claim.epoch != epoch))

    def with_publication(self, view_id: str, publication: Publication) -> Catalogue:
        return replace(self, published={**self.published, view_id: publication})

    def forgetting(self, object_id: str) -> Catalogue:
        """After an object was replaced: the views above have consumed nothing of the new one yet."""
        published = {
            view_id: replace(
                each,
                inputs={i: -1 if i == object_id else version for i, version in each.inputs.items()},
                sources={i: -1 if i == object_id else version for i, version in each.sources.items()},
            )
            for view_id, each in self.published.items()
        }
        return replace(self, published=published)

    def with_history(self, entries: Iterable[HistoryEntry]) -> Catalogue:
        return replace(self, recent_history=(*self.recent_history, *entries))


def _without(mapping: Mapping[_Key, _Value], gone: Set[_Key]) -> dict[_Key, _Value]:
    return {key: value for key, value in mapping.items() if key not in gone}
