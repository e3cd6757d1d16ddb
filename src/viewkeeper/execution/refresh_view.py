"""The refresh of one view inside an epoch: changes, plan, run, and what it relies on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from viewkeeper.errors import (
    ChangeSetMismatchError,
    ConcurrencyProblem,
    ConstraintViolatedError,
    EnvironmentProblem,
    ForeignCommitError,
    RefreshPolicyError,
    TakenOverError,
    ViewkeeperError,
    WarehouseProblem,
    told,
)
from viewkeeper.execution.changed_tables import why_history_is_broken
from viewkeeper.execution.choice import Choice, Chooser, Predictions
from viewkeeper.execution.constraints import (
    distrust,
    holds_now,
    likely_key,
    reliable_declarations,
    verified_by,
)
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import EpochChanges, InputChanges
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.run_plan import PlanRun
from viewkeeper.execution.view_head import ViewHead, view_head
from viewkeeper.execution.workspace import Workspace, definition_of
from viewkeeper.maintenance.build_plan import keyed_inputs, plan_refresh, why_recomputed
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Claim, Publication, TableRecord, ViewRecord


class PlanFailedWarning(UserWarning):
    """A view was recomputed because its incremental plan failed for a reason of Viewkeeper's own."""


_NOT_OF_THE_PLAN = (
    EnvironmentProblem,
    ConcurrencyProblem,
    ConstraintViolatedError,
    ForeignCommitError,
    RefreshPolicyError,
)
"""Failures that recomputing would meet again, or that a user must decide about."""


@dataclass(frozen=True)
class ViewRefresh:
    """One view, the versions that the epoch brings it to, and the inputs that changed until then."""

    workspace: Workspace
    catalogue: Catalogue
    claim: Claim
    view: ViewRecord
    inputs: Mapping[str, int]
    changed: Sequence[str]
    epoch_changes: EpochChanges
    epoch_reads: EpochReads
    full: bool

    def run(self) -> tuple[PlanRun, MaintenancePlan]:
        """Refresh the view. A violated constraint stops it, unless it can be done without."""
        definition = self._definition
        why_not = "REFRESH … FULL was asked for" if self.full else why_recomputed(definition)
        why_not = why_not or self._broken_history(definition)
        if why_not is not None:
            if not self.full:
                self._refuse_if_strict(why_not)
            plan = plan_refresh(definition, {i: frozenset() for i in self.changed}, why_not)
            return self._execute(Choice(plan, self._predictions.seconds(plan, {})), {})
        try:
            declared = reliable_declarations(self.workspace, self.catalogue, definition)
            return self._relying(definition.relying_on(declared))
        except ConstraintViolatedError as violation:
            note = self._without(violation)
            run, plan = self._relying(definition)
            return run, replace(plan, reason=f"{plan.reason}; {note}")

    def _relying(self, definition: ViewDefinition) -> tuple[PlanRun, MaintenancePlan]:
        """Refresh with the help of what was declared. If the plan cannot be made or fails, the view is recomputed."""
        try:
            choice, changes = self._chosen(definition)
        except Exception as failure:
            return self._recompute_after(failure)
        try:
            return self._execute(choice, changes)
        except Exception as failure:
            if choice.plan.strategy is Strategy.RECOMPUTE:
                raise
            return self._recompute_after(failure)

    def _chosen(self, definition: ViewDefinition) -> tuple[Choice, Mapping[str, InputChanges]]:
        """The plan to run, with the changes that it reads; without a gain from what was declared, as if nothing was."""
        versions = {each: (self._published.inputs[each], self.inputs[each]) for each in self.changed}
        instead = self._chooser.choose_unread(definition, self.epoch_changes, versions)
        if instead is not None:
            return instead, {}
        declared = definition.declared
        changes = self._changes(definition)
        verified = verified_by(self.catalogue, self._published)
        plan = plan_refresh(definition, {i: found.kinds for i, found in changes.items()}, None, verified)
        if declared and plan.strategy is not Strategy.RECOMPUTE and not plan.relies_on | plan.spot_checked:
            # Which operations there were, for REMATERIALIZE ON, only changes by key can tell: that is decided.
            return self._chosen(definition.relying_on({}, frozenset()))
        return self._chooser.choose(definition, plan, changes), changes

    def _recompute_after(self, failure: Exception) -> tuple[PlanRun, MaintenancePlan]:
        """What the query can answer is refreshed, whatever became of the plan: recompute the view in its place.

        Lost changes and damaged tables are a reason like others. Everything else is a mistake of ours: users are warned of
        it, and asked to report it.
        """
        if isinstance(failure, _NOT_OF_THE_PLAN) or self._head.is_applied:
            raise failure
        is_lost = isinstance(failure, WarehouseProblem) and not isinstance(failure, ChangeSetMismatchError)
        why = (
            told(failure).rstrip(".")
            if is_lost
            else f"the incremental plan failed: {told(failure).rstrip('.')}"
        )
        self._refuse_if_strict(why)
        plan = plan_refresh(self._definition, {i: frozenset() for i in self.changed}, why)
        choice = Choice(plan, self._predictions.seconds(plan, {}))
        try:
            run, plan = self._execute(choice, {}, replaces_change_set=True)
        except ViewkeeperError as second:
            raise failure if is_lost else second from failure
        if not is_lost:
            run.fallback = told(failure)
            warnings.warn(
                f"{self.view.name} was recomputed, for its incremental plan failed: {told(failure)} "
                "The view is right; please report this.",
                PlanFailedWarning,
                stacklevel=2,
            )
        return run, plan

    def _refuse_if_strict(self, why: str) -> None:
        if self.view.policy is RefreshPolicy.STRICT:
            raise RefreshPolicyError(
                f"{self.view.name} would have to be recomputed: {why}.",
                f"REFRESH MATERIALIZED VIEW {self.view.name} FULL recomputes it once.",
            )

    def _without(self, violation: ConstraintViolatedError) -> str:
        """Why the refresh may go on without a constraint; else the violation is raised."""
        if holds_now(self.workspace, self.catalogue, violation):
            return f"{violation.constraint} was not relied on: the pinned versions lie between two commits"
        if not self.view.goes_on_after_violation:
            raise violation
        distrust(self.workspace, violation)
        return f"{violation.constraint} is violated and no longer relied on until VERIFY TABLE passes"

    def _require_claim(self) -> None:
        """Before every commit: the epoch may have been taken over while this process was held up. Commits that slip through
        all the same are undone by the next epoch, which knows them by their mark."""
        if self.workspace.state.read().claim_with(self.claim.holder.token) is None:
            raise TakenOverError(
                f"epoch {self.claim.epoch} was taken over by another process, which took this one for dead.",
                "nothing is lost; repeat the statement.",
            )

    @property
    def _head(self) -> ViewHead:
        return view_head(self.workspace, self.view, self.claim.bases[self.view.id], self.claim.epoch)

    @cached_property
    def _definition(self) -> ViewDefinition:
        return definition_of(self.view, self.catalogue)

    @property
    def _published(self) -> Publication:
        return self.catalogue.published[self.view.id]

    def _changes(self, definition: ViewDefinition) -> dict[str, InputChanges]:
        found = {}
        keyed = keyed_inputs(definition)
        for input_id in self.changed:
            chosen = definition.change_key(input_id) if input_id in keyed else None
            key = () if chosen is None else chosen.columns
            found[input_id] = self.epoch_changes.of(
                input_id, self._published.inputs[input_id], self.inputs[input_id], key
            )
        return found

    @cached_property
    def _predictions(self) -> Predictions:
        return Predictions(self.workspace, self.catalogue)

    @property
    def _chooser(self) -> Chooser:
        return Chooser(self.catalogue, self.view, self._predictions)

    def _execute(
        self, choice: Choice, changes: Mapping[str, InputChanges], replaces_change_set: bool = False
    ) -> tuple[PlanRun, MaintenancePlan]:
        stored = Event(Moment.CHANGE_SET_STORED, self.claim.epoch, str(self.view.name))
        run = PlanRun(
            self.workspace,
            self.catalogue,
            self.view,
            self.claim.epoch,
            self.inputs,
            self.claim.bases[self.view.id],
            changes,
            self._published.inputs,
            lambda: self.workspace.listener(stored),
            predicted=choice.seconds,
            epoch_reads=self.epoch_reads,
            likely_key=lambda: likely_key(self.view, self.catalogue) or (),
            before_commit=self._require_claim,
            replaces_change_set=replaces_change_set,
        )
        run.run(choice.plan)
        return run, choice.plan

    def _broken_history(self, definition: ViewDefinition) -> str | None:
        """Why the changes of an input since its consumed version are not its feed or its change sets."""
        for input_id in self.changed:
            record = self.catalogue.object(input_id)
            before, after = self._published.inputs.get(input_id, -1), self.inputs[input_id]
            if before < 0 or before > after:
                return f"{record.name} was replaced"
            if isinstance(record, TableRecord):
                query = definition.query
                broken = why_history_is_broken(self.workspace, record, query, before, after)
                if broken is not None:
                    return broken
            if isinstance(record, ViewRecord):
                commits = self.workspace.log.commits_after(self.workspace.data_address(record), before)
                within = [c for c in commits if c.version <= after and c.changes_rows]
                if any(c.epoch is None or c.operation == "RESTORE" for c in within):
                    return f"the table of {record.name} was put back to an earlier epoch"
                missing = self.epoch_changes.missing_epochs(record, before, after)
                if missing:
                    return f"the changes of {record.name} in epoch {missing[0]} are no longer kept"
        return None
