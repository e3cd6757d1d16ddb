"""Hidden views for the groups inside a new view's query: which are kept, and their first load.

What a group holds is known only when it is computed. So groups that could be kept are loaded, in the epoch and the folder
of the view that is created; where the figures then say that keeping them does not pay, what was loaded is removed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import scans
from viewkeeper.errors import UserError
from viewkeeper.execution.analysis import analyse_our_own
from viewkeeper.execution.choice import Predictions
from viewkeeper.execution.constraints import known_keys
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.run_plan import PlanRun
from viewkeeper.execution.vacuum import remove_folder
from viewkeeper.execution.workspace import Workspace, bind_stored, definition_of
from viewkeeper.generated_names import kept_groups
from viewkeeper.maintenance.build_plan import plan_first_load, why_recomputed
from viewkeeper.maintenance.cost import learnt_from_load, why_keep, why_not_keep
from viewkeeper.maintenance.group_state import ROWS
from viewkeeper.maintenance.kept_groups import (
    InnerGroups,
    may_keep_groups,
    text_of,
    why_not_updated,
    with_kept_groups,
)
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sources.spark_failures import spark_failures
from viewkeeper.sql.binding import Column, Input
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.rendering import alias, call, column, delta_table, render, select_from
from viewkeeper.sql.types import UNKNOWN
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.layout import kept_location, new_id
from viewkeeper.storage.records import HistoryEntry, OverKept, Publication, ViewRecord, now


@dataclass(frozen=True)
class Loaded:
    """A view with its rows in place, not published yet."""

    view: ViewRecord
    publication: Publication
    entry: HistoryEntry


def _without_not_null(definition: ViewDefinition) -> ViewDefinition:
    """The view as it is if any column can be NULL. The text over hidden views is stored; what follows from NOT NULL may not be
    in it, because others may drop that."""
    inputs = tuple(
        replace(found, columns=tuple(replace(each, nullable=True) for each in found.columns))
        for found in definition.query.inputs
    )
    return replace(definition, query=replace(definition.query, inputs=inputs))


@dataclass
class NewView:
    """A view that is being created, in an epoch that is claimed. `catalogue` knows the hidden views too, for those who read
    them; nobody else sees it. `versions` are those of all objects that are read."""

    workspace: Workspace
    catalogue: Catalogue
    view: ViewRecord
    definition: ViewDefinition
    epoch: int
    versions: dict[str, int]
    sources: Mapping[str, int]
    kept: list[Loaded] = field(default_factory=list)
    about: list[str] = field(default_factory=list)
    _tried: int = 0

    def keep_groups(self) -> None:
        """Load hidden views for the groups whose keeping pays, and let the view read them."""
        query = _without_not_null(self.definition).algebra
        if isinstance(query, OutsideAlgebra) or not may_keep_groups(definition_of(self.view, self.catalogue)):
            return
        over = with_kept_groups(query, self._keep)
        if self.kept:
            text = text_of(over)
            owner = replace(self.view, over_kept=OverKept(text.text, text.references))
            reason = self._read_by(owner)
            if reason is not None:
                self._keep_nothing(reason)
        self.view = replace(self.view, about_groups=tuple(self.about))

    # -- one hidden view

    def _keep(self, groups: InnerGroups) -> Input | None:
        if groups.order_dependent is not None:
            found = self._needed(groups)
        else:
            found = why_not_updated(groups) or self._why_not_tried(groups) or self._tried_out(groups)
        if isinstance(found, str):
            self.about.append(f"{groups} are not kept: {found}")
            return None
        return self._added(found)

    def _needed(self, groups: InnerGroups) -> Loaded | str:
        """A hidden view for groups that must be kept, whatever that costs; or why they cannot be."""
        self._tried += 1
        view = self._hidden_view(groups)
        try:
            found = self._load(view, is_needed=True)
        except UserError as error:
            found = f"alone they cannot be evaluated: {error.message.rstrip('.')}"
        if isinstance(found, Loaded):
            self.about.append(groups.why_needed)
        else:
            remove_folder(self.workspace, view.location)
        return found

    def _tried_out(self, groups: InnerGroups) -> Loaded | str:
        """A hidden view that was loaded and pays; or why there is none, and then nothing is left of it."""
        self._tried += 1
        view = self._hidden_view(groups)
        try:
            found = self._load(view)
        except UserError as error:
            found = f"alone they cannot be evaluated: {error.message.rstrip('.')}"
        if isinstance(found, Loaded):
            rows, count = self._size(found.view)
            reason = why_not_keep(rows, count)
            if reason is None:
                self.about.append(f"{groups} are kept in a hidden view: {why_keep(rows, count)}")
                return found
            found = reason
        remove_folder(self.workspace, view.location)
        return found

    def _why_not_tried(self, groups: InnerGroups) -> str | None:
        """Where the largest table below is so small that reading it whole costs little, nothing is tried."""
        objects = {scan.input.object_id for scan in scans(groups.query)}
        counts = [
            self.workspace.log.row_count(self.workspace.data_address(self.catalogue.object(each)))
            for each in objects
        ]
        return why_not_keep(max(counts), 1)

    def _hidden_view(self, groups: InnerGroups) -> ViewRecord:
        text = text_of(groups.query)
        return ViewRecord(
            new_id(),
            QualifiedName(self.view.name.schema, kept_groups(self.view.name.name, len(self.kept) + 1)),
            tuple(Column(name, UNKNOWN) for name in groups.names),
            kept_location(self.view.location, self._tried),
            text.text,
            text.references,
            self.view.policy,
            self.view.settings,
            goes_on_after_violation=self.view.goes_on_after_violation,
            owner=self.view.id,
        )

    def _load(self, view: ViewRecord, is_needed: bool = False) -> Loaded | str:
        """The first load of a hidden view, or why it could not be updated afterwards; one that is needed need not be."""
        began = time.monotonic()
        definition = definition_of(view, self.catalogue)
        if definition.query.problems:
            raise definition.query.problems[0]
        definition = analyse_our_own(
            self.workspace, self.catalogue, definition, self.versions, self.view.settings
        )
        if not is_needed and all(each.name != ROWS for each in definition.hidden):
            return why_recomputed(definition) or "sums of these types cannot be updated exactly"
        view = replace(view, columns=definition.columns, hidden=definition.hidden)
        plan = plan_first_load(replace(definition, declared=known_keys(self.catalogue, definition)))
        seconds = Predictions(self.workspace, self.catalogue).seconds(plan, {})
        run = PlanRun(self.workspace, self.catalogue, view, self.epoch, self.versions, None)
        run.run(plan)
        self.workspace.listener(Event(Moment.VIEW_COMMITTED, self.epoch, str(view.name)))
        rows = self.workspace.log.row_count(self.workspace.layout.rows(view.location))
        inputs = {each: self.versions[each] for each in view.input_ids}
        tables = self.catalogue.tables_below(view.input_ids)
        sources = {each: self.sources[each] for each in sorted(tables)}
        entry = HistoryEntry(
            self.epoch, view.id, str(view.name), "published", plan.strategy.value, plan.reason, rows, 0,
            round(time.monotonic() - began, 3), tuple(run.steps), sources, 0, view.location, now(),
            predicted=seconds, owner=view.owner,
        )  # fmt: skip
        return Loaded(
            view,
            Publication(
                self.epoch, 0, inputs, sources, now(), corrections=learnt_from_load(seconds, entry.seconds)
            ),
            entry,
        )

    def _size(self, view: ViewRecord) -> tuple[int, int]:
        """How many rows the groups were made of, and how many groups there are."""
        rows, groups = "grouped_rows", "groups"
        query = select_from(
            delta_table(self.workspace.layout.rows(view.location)),
            [alias(call("SUM", column(ROWS)), rows), alias(call("COUNT", column(ROWS)), groups)],
        )
        with spark_failures(f"{view.name} was measured"):
            found = self.workspace.sessions.own.sql(render(query)).collect()[0]
        return int(found[rows] or 0), int(found[groups])

    def _added(self, loaded: Loaded) -> Input:
        self.kept.append(loaded)
        view = loaded.view
        self.catalogue = self.catalogue.with_view(view).with_publication(view.id, loaded.publication)
        self.versions[view.id] = loaded.publication.version
        taken = {found.relation.lower() for found in self.definition.query.inputs}
        relation = view.name.relation_stem
        while relation.lower() in taken:
            relation += "_"
        return Input(view.id, view.name, view.columns, relation)

    # -- the view over them

    def _read_by(self, owner: ViewRecord) -> str | None:
        """Let the view read its hidden views, unless it would be the worse for it."""
        query = bind_stored(owner.over_kept or owner, self.catalogue)
        if query.problems:
            return query.problems[0].message
        over = replace(self.definition, query=query, hidden=())
        try:
            typed = analyse_our_own(self.workspace, self.catalogue, over, self.versions, owner.settings)
        except UserError as error:
            return error.message
        for column_over, wanted in zip(typed.columns, self.definition.columns, strict=True):
            if column_over.data_type != wanted.data_type:
                return f"{wanted.name} would be a {column_over.data_type}, not a {wanted.data_type}"
        definition = replace(typed, columns=self.definition.columns)
        reason = why_recomputed(definition)
        if reason is not None and why_recomputed(self.definition) is None:
            return reason
        self.definition = definition
        self.view = replace(owner, hidden=definition.hidden)
        return None

    def _keep_nothing(self, reason: str) -> None:
        for loaded in self.kept:
            self.catalogue = self.catalogue.without(loaded.view.id)
            remove_folder(self.workspace, loaded.view.location)
        self.kept = []
        self.about = [f"no groups inside the query are kept: over them, {reason.rstrip('.')}"]


def renamed(catalogue: Catalogue, view: ViewRecord, name: QualifiedName) -> Catalogue:
    """The catalogue with a view under another name, its hidden views too."""
    for number, each in enumerate(catalogue.kept_by(view.id), start=1):
        follows = QualifiedName(name.schema, kept_groups(name.name, number))
        catalogue = catalogue.with_view(replace(each, name=follows))
    return catalogue.with_view(replace(view, name=name))
