"""A refresh is an epoch: pin, compute, commit every target, publish.

Until the publication, which is one swap of the catalogue, readers see the last epoch. Whatever a dead process
left is repeated by the next refresh: same epoch number, same pinned versions, same old states. Its commits
carry the epoch as a Delta transaction, so none takes effect twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from viewkeeper.errors import (
    EnvironmentProblem,
    RefreshConflictError,
    TakenOverError,
    ViewkeeperError,
    told,
)
from viewkeeper.execution.changed_tables import pins_of, problem_of
from viewkeeper.execution.constraints import as_verified, checked
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import EpochChanges
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.refresh_view import ViewRefresh
from viewkeeper.execution.reports import RefreshFailedError, RefreshReport, ViewReport
from viewkeeper.execution.vacuum import remove_folder
from viewkeeper.execution.view_head import clear_head, restore_table, view_head
from viewkeeper.execution.workspace import Workspace
from viewkeeper.maintenance.build_plan import unchanged_reason
from viewkeeper.maintenance.cost import learnt
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.holder import RENEWAL_SECONDS, is_alive, new_holder
from viewkeeper.storage.records import LONG_AGO, Claim, HistoryEntry, Holder, Publication, ViewRecord, now

MAX_TRIES = 3
"""An epoch that so many processes could not finish is given up: it would stop its views for ever."""


@dataclass(frozen=True)
class _Outcome:
    """What became of one view: a publication, or the exit code of what it failed with."""

    entry: HistoryEntry
    publication: Publication | None
    exit_code: int = 0


def refresh(workspace: Workspace, view_ids: Sequence[str], full: bool = False) -> RefreshReport:
    """Bring these views, and the views they read, to the newest versions of their tables.

    `full` recomputes these views, whether something changed or not.
    """
    started = time.monotonic()
    repeated: list[RefreshReport] = []
    with new_holder() as holder:
        while True:
            wanted = [view.id for view in workspace.state.read().views_below(view_ids)]
            if full:
                give_up_left_epochs(workspace, wanted)
            before = finish_left_epochs(workspace, wanted, repeated.append)
            below = before.tables_below(view.id for view in before.views_below(view_ids))
            pins = pins_of(workspace, below, before).versions
            catalogue = workspace.state.read()
            views = catalogue.views_below(view_ids)
            if not full and not _anything_changed(workspace, catalogue, views, pins):
                if repeated:
                    return repeated[-1]
                reports = tuple(
                    ViewReport(str(v.name), "none", unchanged_reason(), 0, 0, 0.0)
                    for v in views
                    if v.owner is None
                )
                return RefreshReport(catalogue.last_epoch, reports, time.monotonic() - started)
            claim = _claim(workspace, before, views, pins, holder)
            if claim is not None:
                break
        asked = {view.id for view in views if view.id in view_ids or view.owner in view_ids}
        return run_epoch(workspace, claim, started, recomputed=frozenset(asked if full else ()))


def finish_left_epochs(
    workspace: Workspace, view_ids: Sequence[str], hear: Callable[[RefreshReport], None] = lambda report: None
) -> Catalogue:
    """Repeat the epochs that dead processes left on these views; refuse if a living one is at work."""
    _forget_dead_loads(workspace)
    while True:
        catalogue, claim = _left_claim(workspace, view_ids)
        if claim is None:
            return catalogue
        if claim.tries >= MAX_TRIES:
            _give_up(workspace, claim)
            continue
        with new_holder() as holder:
            taken = _take_over(workspace, claim, holder)
            if taken is not None:
                workspace.listener(Event(Moment.TAKEN_OVER, claim.epoch))
                hear(run_epoch(workspace, taken, time.monotonic(), raise_failures=False))


def give_up_left_epochs(workspace: Workspace, view_ids: Sequence[str]) -> Catalogue:
    """Drop the epochs that dead processes left on these views, for statements that do not need them: their views keep what
    they publish, and the next refresh undoes what was committed. Refuse if a living process is at work."""
    _forget_dead_loads(workspace)
    while True:
        catalogue, claim = _left_claim(workspace, view_ids)
        if claim is None:
            return catalogue
        _give_up(workspace, claim)


def _left_claim(workspace: Workspace, view_ids: Sequence[str]) -> tuple[Catalogue, Claim | None]:
    """The claim that a dead process left on one of these views, if there is one. A claim whose holder is at work is not
    touched."""
    catalogue = workspace.state.read()
    claim = catalogue.claim_on(view_ids)
    if claim is not None and is_alive(claim):
        names = ", ".join(users_names(catalogue, claim))
        raise RefreshConflictError(
            f"{names or 'the view'} is being refreshed by {claim.holder} since {claim.claimed_at} "
            f"(epoch {claim.epoch}).",
            "wait for it to finish, then repeat the statement.",
        )
    return catalogue, claim


def _give_up(workspace: Workspace, claim: Claim) -> None:
    """End an epoch that nobody can, or need, finish. Its views keep what they publish."""
    why = f"epoch {claim.epoch} was given up after {claim.tries} tries"
    error = f"{why}: {claim.last_error}" if claim.last_error else f"{why}."

    def step(catalogue: Catalogue) -> Catalogue:
        if catalogue.claim_with(claim.holder.token) is None:
            return catalogue
        views = [catalogue.views[view_id] for view_id in claim.views if view_id in catalogue.views]
        entries = [
            _failed(_entry(catalogue, claim, view), catalogue.published[view.id], error) for view in views
        ]
        return catalogue.with_history(entries).without_claim(claim.epoch)

    workspace.state.change(step)
    workspace.listener(Event(Moment.GIVEN_UP, claim.epoch))


def restore_views(workspace: Workspace, view_id: str) -> tuple[int, bool]:
    """Put a view, and the hidden views below it, back to what they publish, where other writers have changed their tables.
    Returns the published epoch, and whether anything had to be put back. A claim keeps refreshes away meanwhile."""
    with new_holder() as holder:
        while True:
            catalogue = finish_left_epochs(workspace, [view_id])
            published = catalogue.published
            views = [*catalogue.kept_by(view_id), catalogue.views[view_id]]
            changed = [
                each
                for each in views
                if view_head(workspace, each, published[each.id].version).foreign is not None
            ]
            if not changed:
                return published[view_id].epoch, False
            claim = _claim(
                workspace, catalogue, views, dict(published[view_id].sources), holder, restores=True
            )
            if claim is not None:
                break
        try:
            with renewing(workspace, claim):
                for each in changed:
                    restore_table(workspace, each, published[each.id].version, claim.epoch)
        finally:
            workspace.state.change(partial(Catalogue.without_claim, epoch=claim.epoch))
    return published[view_id].epoch, True


def users_names(catalogue: Catalogue, claim: Claim) -> list[str]:
    """The names of the users' views in a claim; those of views that are just being created are not known."""
    return [str(view.name) for view in catalogue.users_views() if view.id in claim.views]


def _forget_dead_loads(workspace: Workspace) -> None:
    """What only its user can repeat is dropped: the first load of a view, and putting a view back."""
    for claim in workspace.state.read().claims:
        if not claim.is_repeatable and not is_alive(claim):
            workspace.state.change(partial(Catalogue.without_claim, epoch=claim.epoch))
            if claim.loads is not None:
                remove_folder(workspace, claim.loads)


def _take_over(workspace: Workspace, claim: Claim, holder: Holder) -> Claim | None:
    """Make a dead process's claim ours; None if another one was faster."""
    taken = replace(claim, holder=holder, renewed_at=now(), tries=claim.tries + 1)

    def step(catalogue: Catalogue) -> Catalogue:
        current = catalogue.claim_with(claim.holder.token)
        return catalogue if current is None else catalogue.with_claim(taken)

    changed = workspace.state.change(step)
    return taken if changed.claim_with(holder.token) is not None else None


def _claim(
    workspace: Workspace,
    known: Catalogue,
    views: Sequence[ViewRecord],
    pins: dict[str, int],
    holder: Holder,
    restores: bool = False,
) -> Claim | None:
    """Take the next epoch number for these views, unless somebody else holds one of them. None if another process has
    refreshed or replaced one of them since the catalogue was read, before the tables were pinned: the pins may be older than
    what the view publishes."""
    made: list[Claim] = []

    def step(catalogue: Catalogue) -> Catalogue:
        made.clear()
        other = catalogue.claim_on(view.id for view in views)
        if other is not None or any(view.id not in catalogue.views for view in views):
            who = (
                f"{other.holder} took them first (epoch {other.epoch})"
                if other
                else "one of them was dropped"
            )
            raise RefreshConflictError(f"the views cannot be refreshed now: {who}.", "repeat the statement.")
        if any(
            catalogue.views[view.id] != view or catalogue.published[view.id] != known.published.get(view.id)
            for view in views
        ):
            return catalogue
        bases = {view.id: catalogue.published[view.id].version for view in views}
        claim = Claim(
            catalogue.last_epoch + 1, tuple(v.id for v in views), pins, bases, holder, now(), now(), restores=restores
        )  # fmt: skip
        made.append(claim)
        return catalogue.with_claim(claim)

    workspace.state.change(step)
    if not made:
        return None
    workspace.listener(Event(Moment.PINNED, made[0].epoch))
    return made[0]


def run_epoch(
    workspace: Workspace,
    claim: Claim,
    started: float,
    raise_failures: bool = True,
    recomputed: frozenset[str] = frozenset(),
) -> RefreshReport:
    """Do, or repeat, the work of a claimed epoch and publish it."""
    try:
        outcomes = _work(workspace, claim, recomputed)
    except BaseException as error:
        _leave_to_others(workspace, claim, error)
        raise
    workspace.listener(Event(Moment.PUBLISHED, claim.epoch))
    return _report(claim.epoch, outcomes, time.monotonic() - started, raise_failures)


def _leave_to_others(workspace: Workspace, claim: Claim, error: BaseException) -> None:
    """We live but stop working on the epoch (interrupted, disk full): whoever refreshes next repeats it."""
    holder = replace(claim.holder, pid=-1, started="")
    left = replace(claim, holder=holder, renewed_at=LONG_AGO, last_error=told(error))
    try:
        workspace.state.change(
            lambda catalogue: (
                catalogue if catalogue.claim_with(claim.holder.token) is None else catalogue.with_claim(left)
            )
        )
    except ViewkeeperError:
        return


def _work(workspace: Workspace, claim: Claim, recomputed: frozenset[str]) -> list[_Outcome]:
    catalogue = workspace.state.read()
    views = [catalogue.views[view_id] for view_id in claim.views if view_id in catalogue.views]
    versions = dict(claim.pins)
    outcomes: list[_Outcome] = []
    failed: dict[str, _Outcome] = {}
    epoch_reads = EpochReads(
        workspace, catalogue, [each for each in views if _is_behind(catalogue, claim, each)]
    )
    with renewing(workspace, claim), closing(EpochChanges(workspace, catalogue)) as epoch_changes:
        for at, view in enumerate(views):
            workspace.listener(Event(Moment.VIEW_STARTED, claim.epoch, str(view.name), at + 1, len(views)))
            epoch_reads.begin(view)
            outcome = _refresh_view(
                workspace, catalogue, claim, view, versions, failed, epoch_changes, epoch_reads, view.id in recomputed
            )  # fmt: skip
            outcomes.append(outcome)
            if outcome.publication is None:
                failed[view.id] = outcome
            else:
                versions[view.id] = outcome.publication.version
        workspace.listener(Event(Moment.PUBLISHING, claim.epoch))
        _publish(workspace, claim, outcomes)
    return outcomes


def _is_behind(catalogue: Catalogue, claim: Claim, view: ViewRecord) -> bool:
    """Whether a table below the view has had commits since."""
    sources = catalogue.published[view.id].sources
    return any(claim.pins.get(table_id) != version for table_id, version in sources.items())


def _refresh_view(
    workspace: Workspace,
    catalogue: Catalogue,
    claim: Claim,
    view: ViewRecord,
    versions: dict[str, int],
    failed: Mapping[str, _Outcome],
    epoch_changes: EpochChanges,
    epoch_reads: EpochReads,
    full: bool,
) -> _Outcome:
    """Bring one view to the epoch's versions. Whatever it fails with is its outcome alone, but for a machine that lets us
    down and for an epoch that is no longer ours."""
    began = time.monotonic()
    published = catalogue.published[view.id]
    inputs = {each: versions.get(each, -1) for each in dict.fromkeys((*view.named_ids, *view.input_ids))}
    entry = _entry(catalogue, claim, view)
    broken = next((catalogue.views[each] for each in view.input_ids if each in failed), None)
    if broken is not None and broken.owner is not None:
        return _passed_on(failed[broken.id], entry, published)
    try:
        if broken is not None:
            raise RefreshConflictError(f"{broken.name}, which {view.name} reads, could not be refreshed.")
        for table_id in entry.sources:
            if table_id not in claim.pins:
                raise problem_of(workspace, catalogue.tables[table_id])
        changed = [i for i in view.input_ids if _input_changed(workspace, catalogue, i, published, inputs[i])]
        version, verified = published.version, published.verified
        base = claim.bases[view.id]
        clear_head(workspace, catalogue, view, base, claim.epoch)
        if changed or full:
            refresh = ViewRefresh(
                workspace, catalogue, claim, view, inputs, changed, epoch_changes, epoch_reads, full
            )
            run, plan = refresh.run()
            verified = as_verified(catalogue, checked(catalogue, plan.relies_on))
            version = view_head(workspace, view, base, claim.epoch).committed
            entry = replace(
                entry, strategy=plan.strategy.value, reason=plan.reason, inserted=run.inserted, deleted=run.deleted,
                steps=tuple(run.steps), version=version, predicted=run.predicted, fallback=run.fallback,
            )  # fmt: skip
        entry = replace(entry, seconds=round(time.monotonic() - began, 3), finished_at=now())
        corrections = learnt(published.corrections, entry.strategy, entry.predicted, entry.seconds)
        workspace.listener(Event(Moment.VIEW_COMMITTED, claim.epoch, str(view.name)))
        return _Outcome(
            entry, Publication(claim.epoch, version, inputs, entry.sources, now(), verified, corrections)
        )
    except (EnvironmentProblem, TakenOverError):
        raise
    except Exception as error:
        seconds = round(time.monotonic() - began, 3)
        failure = _failed(replace(entry, seconds=seconds), published, told(error))
        return _Outcome(failure, None, error.exit_code if isinstance(error, ViewkeeperError) else 1)


def _entry(catalogue: Catalogue, claim: Claim, view: ViewRecord) -> HistoryEntry:
    """What an epoch does to a view that has not changed."""
    published = catalogue.published[view.id]
    below = sorted(catalogue.tables_below(view.input_ids))
    sources = {each: claim.pins.get(each, published.sources.get(each, -1)) for each in below}
    return HistoryEntry(
        claim.epoch,
        view.id,
        str(view.name),
        "published",
        Strategy.NONE.value,
        unchanged_reason(),
        0,
        0,
        0.0,
        (),
        sources,
        published.version,
        view.location,
        now(),
        owner=view.owner,
    )


def _failed(entry: HistoryEntry, published: Publication, error: str) -> HistoryEntry:
    """The same of a view that keeps what it publishes."""
    return replace(
        entry, outcome="failed", strategy=Strategy.RECOMPUTE.value, reason="failed", version=None,
        error=error, finished_at=now(), sources=dict(published.sources),
    )  # fmt: skip


def _passed_on(failure: _Outcome, entry: HistoryEntry, published: Publication) -> _Outcome:
    """The failure of a hidden view as that of the view that reads it: users are told the cause, not where it lay."""
    mine = replace(
        failure.entry, view_id=entry.view_id, view=entry.view, location=entry.location, owner=entry.owner,
        sources=dict(published.sources), seconds=0.0,
    )  # fmt: skip
    return replace(failure, entry=mine)


def _input_changed(
    workspace: Workspace, catalogue: Catalogue, input_id: str, published: Publication, version: int
) -> bool:
    """Whether an input has other rows than those the view was made from."""
    consumed = published.inputs.get(input_id)
    if consumed is None or consumed > version:
        return True
    if consumed == version:
        return False
    commits = workspace.log.commits_after(workspace.data_address(catalogue.object(input_id)), consumed)
    return any(commit.changes_rows for commit in commits if commit.version <= version)


def _anything_changed(
    workspace: Workspace, catalogue: Catalogue, views: Sequence[ViewRecord], pins: dict[str, int]
) -> bool:
    for view in views:
        published = catalogue.published[view.id]
        if view_head(workspace, view, published.version).foreign is not None:
            return True
        for input_id in view.input_ids:
            upstream = catalogue.published.get(input_id)
            if upstream is None and input_id not in pins:
                return True
            version = pins[input_id] if upstream is None else upstream.version
            if _input_changed(workspace, catalogue, input_id, published, version):
                return True
    return False


def _publish(workspace: Workspace, claim: Claim, outcomes: Sequence[_Outcome]) -> None:
    def step(catalogue: Catalogue) -> Catalogue:
        if catalogue.claim_with(claim.holder.token) is None:
            raise TakenOverError(
                f"epoch {claim.epoch} was taken over by another process, which took this one for dead.",
                "nothing is lost; repeat the statement.",
            )
        for outcome in outcomes:
            if outcome.publication is not None:
                catalogue = catalogue.with_publication(outcome.entry.view_id, outcome.publication)
        return catalogue.with_history(outcome.entry for outcome in outcomes).without_claim(claim.epoch)

    workspace.state.change(step)


@contextmanager
def renewing(workspace: Workspace, claim: Claim) -> Iterator[None]:
    """Renew the claim now and then, for processes on other machines that watch it."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEWAL_SECONDS):
            try:
                workspace.state.change(
                    lambda catalogue: (
                        catalogue
                        if catalogue.claim_with(claim.holder.token) is None
                        else catalogue.with_claim(replace(claim, renewed_at=now()))
                    )
                )
            except ViewkeeperError:
                continue

    thread = threading.Thread(target=renew, daemon=True, name="viewkeeper-renewal")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def report_of(entry: HistoryEntry) -> ViewReport:
    return ViewReport(
        entry.view, entry.strategy, entry.reason, entry.inserted, entry.deleted, entry.seconds, entry.steps, entry.error,
        fallback=entry.fallback,
    )  # fmt: skip


def _report(epoch: int, outcomes: Sequence[_Outcome], seconds: float, raise_failures: bool) -> RefreshReport:
    """What users are told: of their own views, each with what became of the hidden views below it."""
    entries = [outcome.entry for outcome in outcomes if outcome.entry.owner is None]
    hidden = [outcome.entry for outcome in outcomes if outcome.entry.owner is not None]
    views = tuple(
        replace(
            report_of(entry),
            kept=tuple(report_of(each) for each in hidden if each.owner == entry.view_id),
        )
        for entry in entries
    )
    report = RefreshReport(epoch, views, round(seconds, 3))
    failures = [entry for entry in entries if entry.error is not None]
    if failures and raise_failures:
        kept = ", ".join(entry.view for entry in failures)
        raise RefreshFailedError(
            f"{failures[0].view} could not be refreshed: {failures[0].error}",
            f"{kept} kept the last epoch; every other view was published.",
            report,
            max(outcome.exit_code for outcome in outcomes),
        )
    return report
