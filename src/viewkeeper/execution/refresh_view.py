"""The refresh of one view inside an epoch: changes, plan, run, and what it relies on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from viewkeeper.errors import ConstraintViolatedError, RefreshPolicyError
from viewkeeper.execution.choice import Choice, Chooser, Predictions
from viewkeeper.execution.constraints import distrust, holds_now, likely_key, reliable_declarations
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import EpochChanges, InputChanges
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.run_plan import PlanRun
from viewkeeper.execution.workspace import Workspace, definition_of
from viewkeeper.facts.declared import Declarations, Reliance
from viewkeeper.maintenance.build_plan import keyed_inputs, plan_refresh, why_recomputed
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import Claim, Publication, ViewRecord


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
        definition = definition_of(self.view, self.catalogue)
        why_not = "REFRESH … FULL was asked for" if self.full else why_recomputed(definition)
        why_not = why_not or self._broken_history()
        if why_not is not None:
            if self.view.policy is RefreshPolicy.STRICT and not self.full:
                raise RefreshPolicyError(
                    f"{self.view.name} would have to be recomputed: {why_not}.",
                    f"REFRESH MATERIALIZED VIEW {self.view.name} FULL recomputes it once.",
                )
            plan = plan_refresh(definition, {i: frozenset() for i in self.changed}, why_not)
            return self._run_choice(Choice(plan, self._predictions.seconds(plan, {})), {})
        versions = {each: (self._published.inputs[each], self.inputs[each]) for each in self.changed}
        instead = self._chooser.choose_unread(definition, self.epoch_changes, versions)
        if instead is not None:
            return self._run_choice(instead, {})
        declared = reliable_declarations(self.workspace, self.catalogue, definition)
        try:
            return self._relying(definition.relying_on(declared))
        except ConstraintViolatedError as violation:
            note = self._without(violation)
            run, plan = self._relying(definition)
            return run, replace(plan, reason=f"{plan.reason}; {note}")

    def _relying(self, definition: ViewDefinition) -> tuple[PlanRun, MaintenancePlan]:
        """Refresh with the help of what was declared; without a gain from it, as if nothing was declared."""
        declared = definition.declared
        changes = self._changes(declared, keyed_inputs(definition))
        verified = frozenset(Reliance(*each) for each in self._published.verified)
        plan = plan_refresh(definition, {i: found.kinds for i, found in changes.items()}, None, verified)
        if declared and plan.strategy is not Strategy.RECOMPUTE and not plan.relies_on | plan.spot_checked:
            # Which operations there were, for REMATERIALIZE ON, only changes by key can tell: that is decided.
            return self._relying(definition.relying_on({}, frozenset()))
        return self._run_choice(self._chooser.choose(definition, plan, changes), changes)

    def _without(self, violation: ConstraintViolatedError) -> str:
        """Why the refresh may go on without a constraint; else the violation is raised."""
        if holds_now(self.workspace, self.catalogue, violation):
            return f"{violation.constraint} was not relied on: the pinned versions lie between two commits"
        if not self.view.goes_on_after_violation:
            raise violation
        distrust(self.workspace, violation)
        return f"{violation.constraint} is violated and no longer relied on until VERIFY TABLE passes"

    @property
    def _published(self) -> Publication:
        return self.catalogue.published[self.view.id]

    def _changes(self, declared: Declarations, parents: frozenset[str]) -> dict[str, InputChanges]:
        found = {}
        for input_id in self.changed:
            keys = declared[input_id].keys if input_id in declared and input_id in parents else ()
            key = keys[0].columns if keys else ()
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

    def _run_choice(
        self, choice: Choice, changes: Mapping[str, InputChanges]
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
        )
        run.run(choice.plan)
        return run, choice.plan

    def _broken_history(self) -> str | None:
        """Why the changes of an input since its consumed version are not its feed or its change sets."""
        for input_id in self.changed:
            record = self.catalogue.object(input_id)
            before, after = self._published.inputs.get(input_id, -1), self.inputs[input_id]
            if before < 0 or before > after:
                return f"{record.name} was replaced"
            if isinstance(record, ViewRecord):
                commits = self.workspace.log.commits_after(self.workspace.data_address(record), before)
                within = [c for c in commits if c.version <= after and c.changes_rows]
                if any(c.epoch is None or c.operation == "RESTORE" for c in within):
                    return f"the table of {record.name} was put back to an earlier epoch"
        return None
