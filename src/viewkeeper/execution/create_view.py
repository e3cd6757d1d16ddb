"""CREATE and ALTER MATERIALIZED VIEW: analysed first, loaded next, visible last, by one publication."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.errors import (
    InUseError,
    InvalidStatementError,
    Location,
    NameExistsError,
    RefreshConflictError,
    RefreshPolicyError,
    TakenOverError,
    UnknownNameError,
    UserError,
    ViewkeeperError,
)
from viewkeeper.execution.analysis import NOT_PLANNED, analyse
from viewkeeper.execution.changed_tables import versions_of
from viewkeeper.execution.choice import Predictions
from viewkeeper.execution.constraints import known_keys
from viewkeeper.execution.epochs import finish_left_epochs, renewing, report_of
from viewkeeper.execution.kept_views import Loaded, NewView
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.reports import RefreshReport
from viewkeeper.execution.run_plan import PlanRun
from viewkeeper.execution.vacuum import remove_folder
from viewkeeper.execution.workspace import Workspace, bind_new, bind_stored
from viewkeeper.maintenance.build_plan import plan_first_load, why_recomputed
from viewkeeper.maintenance.cost import learnt_from_load
from viewkeeper.maintenance.kept_groups import over_needed_groups
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.sql.names import did_you_mean
from viewkeeper.sql.script import Fragment, parse_sql
from viewkeeper.sql.statements import CreateView, Operation, RefreshPolicy
from viewkeeper.sql.types import UNKNOWN
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.holder import new_holder
from viewkeeper.storage.layout import new_id, view_location
from viewkeeper.storage.records import Claim, HistoryEntry, OverKept, Publication, ViewRecord, now


class RecomputeWarning(UserWarning):
    """A view with REFRESH INCREMENTAL will be recomputed."""


def create_view(workspace: Workspace, statement: CreateView) -> RefreshReport | None:
    """Create or replace a view and load it; None if it exists and IF NOT EXISTS was said."""
    catalogue = workspace.state.read()
    existing = catalogue.named(statement.name)
    if existing is not None:
        if statement.if_not_exists:
            return None
        if not statement.or_replace:
            raise NameExistsError(
                f"{statement.name} exists already.", "choose another name, or write CREATE OR REPLACE."
            )
        if not isinstance(existing, ViewRecord):
            raise NameExistsError(f"{statement.name} is a table, not a view.", "choose another name.")
        catalogue = finish_left_epochs(workspace, [existing.id])
    query = bind_new(statement.query, catalogue)
    planned = planned_definition(statement, query)
    check_policy(planned, statement.query)
    if existing is not None:
        _refuse_cycle(catalogue, existing.id, query)
    versions_of(workspace, catalogue.tables_below(each.object_id for each in query.inputs), catalogue)
    newest = workspace.state.read()
    if newest.tables != catalogue.tables:  # another process has loosened NOT NULL
        catalogue, query = newest, bind_new(statement.query, newest)
        planned = planned_definition(statement, query)
    inputs, sources = _load_versions(workspace, catalogue, query)
    settings = workspace.sessions.result_settings(statement.query.text)
    view_id = existing.id if existing is not None else new_id()
    definition = analyse(
        workspace, catalogue, query, inputs, settings, statement.name, view_id, statement.policy
    )
    if why_recomputed(over_needed_groups(planned)) is None:
        check_policy(definition, statement.query)
    view = ViewRecord(
        view_id,
        statement.name,
        definition.columns,
        view_location(new_id()),
        statement.query.text,
        {reference.name.key: query.input_of(reference).object_id for reference in query.parsed.references},
        statement.policy,
        settings,
        comment=statement.comment,
        hidden=definition.hidden,
        refusal=definition.refusal,
        goes_on_after_violation=statement.goes_on_after_violation,
        rematerialized_on=tuple(
            (each.value, table) for table, each in sorted(planned.rematerialized, key=lambda pair: pair[0])
        ),
    )
    if existing is not None:
        check_readers(catalogue, view)
    return _load(workspace, view, definition, inputs, sources)


def planned_definition(statement: CreateView, query: BoundQuery) -> ViewDefinition:
    """The view as far as it is known without Spark: names, but not the types of expressions."""
    view = ViewDefinition(
        statement.name,
        "",
        query,
        _untyped(query.output_names),
        policy=statement.policy,
        rematerialized=frozenset(_rematerialized(statement, query)),
    )
    try:
        return with_hidden_columns(
            view, lambda sql: _untyped(item.alias for item in parse_sql(sql).args["expressions"])
        )
    except Exception as error:  # our reading fails; what Spark says of the query is another thing
        return view.refused(f"{NOT_PLANNED} ({type(error).__name__})")


def _rematerialized(statement: CreateView, query: BoundQuery) -> Iterator[tuple[str, Operation]]:
    for operation, name in statement.rematerialized_on:
        found = query.by_reference.get(name.key)
        if found is None:
            known = [str(each.name) for each in query.inputs]
            raise UnknownNameError(
                f"{statement.name} does not read {name}.",
                did_you_mean(str(name), known, f"it reads {', '.join(known)}."),
            )
        yield found.object_id, operation


def _untyped(names: Iterable[str]) -> tuple[Column, ...]:
    return tuple(Column(name, UNKNOWN) for name in names)


def check_policy(view: ViewDefinition, query: Fragment | None = None) -> None:
    """STRICT refuses what would recompute; INCREMENTAL warns."""
    reason = why_recomputed(over_needed_groups(view))
    if reason is None and view.rematerialized and view.policy is RefreshPolicy.STRICT:
        reason = "REMATERIALIZE ON asks for it"
    if reason is None:
        return
    if view.policy is RefreshPolicy.STRICT:
        raise RefreshPolicyError(
            f"{view.name} cannot be maintained without recomputing: {reason}.",
            "use REFRESH AUTO.",
            None if query is None else _place(view, query),
        )
    if view.policy is RefreshPolicy.INCREMENTAL:
        warnings.warn(f"{view.name} will be recomputed: {reason}.", RecomputeWarning, stacklevel=2)


def _place(view: ViewDefinition, query: Fragment) -> Location:
    """Where the query cannot be maintained: the function that is to blame, else all of it."""
    outside = view.algebra
    if isinstance(outside, OutsideAlgebra) and outside.function is not None:
        for token in query.tokens():
            if token.text.lower() == outside.function:
                return query.locate(token.start, token.end + 1)
    return query.locate(0, len(query.text))


def _refuse_cycle(catalogue: Catalogue, view_id: str, query: BoundQuery) -> None:
    for found in query.inputs:
        below = (
            {view.id for view in catalogue.views_below([found.object_id])}
            if found.object_id in catalogue.views
            else set()
        )
        if found.object_id == view_id or view_id in below:
            reference = next(
                r for r in query.parsed.references if query.input_of(r).object_id == found.object_id
            )
            raise InvalidStatementError(
                f"the view would read itself through {found.name}.",
                "a view cannot depend on itself.",
                query.parsed.locate(reference),
            )


def check_readers(catalogue: Catalogue, replacement: ViewRecord) -> None:
    """The views above must still make sense over the new columns."""
    changed = catalogue.with_view(replacement)
    check_stored_queries(changed, catalogue.readers_of(replacement.id), str(replacement.name))


def check_stored_queries(catalogue: Catalogue, readers: Sequence[ViewRecord], replaced: str) -> None:
    for reader in readers:
        problem = _problem_of(reader, catalogue)
        if problem is not None:
            raise InUseError(
                f"{reader.name} reads {replaced} and would not work any more: {problem.message}",
                f"drop or alter {reader.name} first.",
            )


def _problem_of(view: ViewRecord, catalogue: Catalogue) -> UserError | None:
    """What does not bind in a view's query, or in the hidden views below it: they name columns that * leaves open."""
    texts: list[ViewRecord | OverKept] = [view]
    if view.over_kept is not None:
        texts += [view.over_kept, *catalogue.kept_by(view.id)]
    for each in texts:
        try:
            problems = bind_stored(each, catalogue).problems
        except UserError as error:
            return error
        if problems and view.refusal is None:  # else our reading of its columns says nothing
            return problems[0]
    return None


def _load_versions(
    workspace: Workspace, catalogue: Catalogue, query: BoundQuery
) -> tuple[dict[str, int], dict[str, int]]:
    """Versions for a first load: those of the last epoch where it covers a table, else the newest.

    Returns the versions of the query's inputs, and of all base tables below.
    """
    last: dict[str, int] = {}
    for publication in sorted(catalogue.published.values(), key=lambda publication: publication.epoch):
        last.update(publication.sources)
    inputs: dict[str, int] = {}
    sources: dict[str, int] = {}
    for found in query.inputs:
        if found.object_id in catalogue.views:
            publication = catalogue.published[found.object_id]
            inputs[found.object_id] = publication.version
            sources.update(publication.sources)
        else:
            address = workspace.data_address(catalogue.object(found.object_id))
            newest = workspace.log.version(address)
            version = last.get(found.object_id, newest)
            inputs[found.object_id] = sources[found.object_id] = version if 0 <= version <= newest else newest
    return inputs, sources


def _load(
    workspace: Workspace,
    view: ViewRecord,
    definition: ViewDefinition,
    inputs: dict[str, int],
    sources: dict[str, int],
) -> RefreshReport:
    started = time.monotonic()
    with new_holder() as holder:
        claims: list[Claim] = []

        def claim_epoch(catalogue: Catalogue) -> Catalogue:
            other = catalogue.claim_on([view.id])
            if other is not None:
                raise RefreshConflictError(
                    f"{view.name} is being refreshed by {other.holder}.", "repeat the statement."
                )
            claim = Claim(
                catalogue.last_epoch + 1, (view.id,), sources, {}, holder, now(), now(), loads=view.location
            )
            claims[:] = [claim]
            return catalogue.with_claim(claim)

        catalogue = workspace.state.change(claim_epoch)
        claim = claims[0]
        workspace.listener(Event(Moment.PINNED, claim.epoch, str(view.name)))
        try:
            with renewing(workspace, claim):
                new = NewView(workspace, catalogue, view, definition, claim.epoch, {**inputs}, sources)
                new.keep_groups()
                loaded = _load_rows(new)
                workspace.listener(Event(Moment.PUBLISHING, claim.epoch))
                _publish_new(workspace, claim, [*new.kept, loaded])
        except BaseException:
            _give_up(workspace, claim, view)
            raise
    workspace.listener(Event(Moment.PUBLISHED, claim.epoch))
    report = replace(report_of(loaded.entry), kept=tuple(report_of(each.entry) for each in new.kept))
    return RefreshReport(claim.epoch, (report,), round(time.monotonic() - started, 3))


def _load_rows(new: NewView) -> Loaded:
    """The first load of the view itself, over its hidden views if it has some."""
    began = time.monotonic()
    workspace, view, definition = new.workspace, new.view, new.definition
    plan = plan_first_load(replace(definition, declared=known_keys(new.catalogue, definition)))
    text = None
    if view.over_kept is None:
        text = definition.query.text_over(lambda found: f"{found.relation}_new")
    seconds = Predictions(workspace, new.catalogue).seconds(plan, {})
    run = PlanRun(workspace, new.catalogue, view, new.epoch, new.versions, None, query_text=text)
    run.run(plan)
    workspace.listener(Event(Moment.VIEW_COMMITTED, new.epoch, str(view.name)))
    rows = workspace.log.row_count(workspace.layout.rows(view.location))
    inputs = {each: new.versions[each] for each in dict.fromkeys((*view.named_ids, *view.input_ids))}
    entry = HistoryEntry(
        new.epoch, view.id, str(view.name), "published", plan.strategy.value, "; ".join([plan.reason, *view.about_groups]),
        rows, 0, round(time.monotonic() - began, 3), tuple(run.steps), new.sources, 0, view.location, now(),
        predicted=seconds,
    )  # fmt: skip
    return Loaded(
        view,
        Publication(
            new.epoch, 0, inputs, new.sources, now(), corrections=learnt_from_load(seconds, entry.seconds)
        ),
        entry,
    )


def _publish_new(workspace: Workspace, claim: Claim, loads: Sequence[Loaded]) -> None:
    """Make a view and the hidden views below it visible at once; what they replace is gone at once."""
    view = loads[-1].view

    def step(catalogue: Catalogue) -> Catalogue:
        if catalogue.claim_with(claim.holder.token) is None:
            raise TakenOverError(
                f"epoch {claim.epoch} was taken over by another process.", "repeat the statement."
            )
        other = catalogue.named(view.name)
        if other is not None and other.id != view.id:
            raise NameExistsError(
                f"{view.name} was created by somebody else meanwhile.", "choose another name."
            )
        if any(each not in catalogue.tables and each not in catalogue.views for each in view.named_ids):
            raise InUseError("a table that the view reads was dropped meanwhile.", "create it again first.")
        if view.id in catalogue.views:
            check_readers(catalogue, view)
            catalogue = catalogue.forgetting(view.id)
            for replaced in catalogue.kept_by(view.id):
                catalogue = catalogue.without(replaced.id)
        for loaded in loads:
            catalogue = catalogue.with_view(loaded.view)
            catalogue = catalogue.with_publication(loaded.view.id, loaded.publication)
        return catalogue.with_history(loaded.entry for loaded in loads).without_claim(claim.epoch)

    workspace.state.change(step)


def _give_up(workspace: Workspace, claim: Claim, view: ViewRecord) -> None:
    """A load that failed leaves nothing behind; what cannot be removed now, VACUUM WAREHOUSE removes."""
    try:
        workspace.state.change(lambda catalogue: catalogue.without_claim(claim.epoch))
        remove_folder(workspace, view.location)
    except ViewkeeperError:
        return
