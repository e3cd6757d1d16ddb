"""AUTO: the cheaper of two plans, by what they read and what the view's past refreshes took."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from viewkeeper.execution.input_changes import EpochChanges, InputChanges
from viewkeeper.execution.workspace import Workspace
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_refresh
from viewkeeper.maintenance.cost import Sizes, predicted_seconds, why_recompute
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.records import ViewRecord

QUICKLY_READ = 20_000
"""So many changed rows are read before it is chosen what to do with them: that takes a tenth of a second."""


CHOOSE_BY = "VIEWKEEPER_CHOOSE_BY"
"""The environment variable that, set to `sizes`, leaves measured times out of the choice: the same data and the same
changes then give the same plan on every machine, however busy it is."""


@dataclass(frozen=True)
class Choice:
    plan: MaintenancePlan
    seconds: float
    """Predicted, before they are corrected by the past."""


@dataclass(frozen=True)
class Predictions:
    """What plans will take by the sizes of what they read, before that is corrected by the past."""

    workspace: Workspace
    catalogue: Catalogue
    _rows: dict[str, int] = field(default_factory=dict)

    def seconds(self, plan: MaintenancePlan, changed: Mapping[str, int]) -> float:
        """`changed` are rows, by the input they belong to."""
        read = {each.object_id for step in plan.steps for each in step.reads if not each.state.is_change}
        records = [self.catalogue.object(object_id) for object_id in sorted(read)]
        rows = {each.id: self._rows_of(each) for each in records}
        return predicted_seconds(
            plan, Sizes(rows, changed, {each.id: _likely_keys(each) for each in records})
        )

    def _rows_of(self, record: ObjectRecord) -> int:
        if record.id not in self._rows:
            self._rows[record.id] = self.workspace.log.row_count(self.workspace.data_address(record))
        return self._rows[record.id]


def _likely_keys(record: ObjectRecord) -> list[frozenset[str]]:
    """Keys as declared, for a prediction may be wrong. Where views are looked into, it is for a row by each value."""
    if isinstance(record, ViewRecord):
        return [frozenset()]
    return [frozenset(name.lower() for name in key.columns) for key in record.keys]


@dataclass(frozen=True)
class Chooser:
    """How one view is brought up to date in one epoch. Only AUTO may recompute because it is cheaper."""

    catalogue: Catalogue
    view: ViewRecord
    predictions: Predictions

    def choose(
        self, definition: ViewDefinition, plan: MaintenancePlan, changes: Mapping[str, InputChanges]
    ) -> Choice:
        """The plan to run, now that the changes are known."""
        changed = {input_id: found.rows for input_id, found in changes.items()}
        seconds = self.predictions.seconds(plan, changed)
        kinds = {input_id: found.kinds for input_id, found in changes.items()}
        instead = self._recompute(definition, plan, seconds, kinds, f"{sum(changed.values()):,}")
        return Choice(plan, seconds) if instead is None else instead

    def choose_unread(
        self, definition: ViewDefinition, epoch_changes: EpochChanges, inputs: Mapping[str, tuple[int, int]]
    ) -> Choice | None:
        """Recomputing, if there are so many changes that it is cheaper by far and reading them would be for nothing. The
        inputs that changed are given with the versions between which they did."""
        if self.view.policy is not RefreshPolicy.AUTO:
            return None
        changed = {}
        for input_id, (consumed, version) in inputs.items():
            rows = epoch_changes.estimated_rows(input_id, consumed, version)
            if rows is None:
                return None
            changed[input_id] = rows
        if sum(changed.values()) <= QUICKLY_READ:
            return None
        kinds = dict.fromkeys(inputs, ANY_CHANGE)
        plan = plan_refresh(definition, kinds)
        seconds = self.predictions.seconds(plan, changed)
        about = float(f"{sum(changed.values()):.2g}")
        return self._recompute(definition, plan, seconds, kinds, f"about {about:,.0f}")

    def _recompute(
        self, definition: ViewDefinition, plan: MaintenancePlan, seconds: float, kinds: Kinds, changed: str
    ) -> Choice | None:
        """Recomputing, if it is predicted to be cheaper than a plan; `changed` tells the rows in words."""
        if self.view.policy is not RefreshPolicy.AUTO or plan.strategy is Strategy.RECOMPUTE:
            return None
        whole = self.predictions.seconds(plan_refresh(definition, kinds, ""), {})
        corrections = self._corrections()
        reason = why_recompute(
            seconds * corrections.get(plan.strategy.value, 1.0),
            whole * corrections.get(Strategy.RECOMPUTE.value, 1.0),
            changed,
        )
        return None if reason is None else Choice(plan_refresh(definition, kinds, reason), whole)

    def _corrections(self) -> Mapping[str, float]:
        """By how much predictions for the view are corrected, by strategy."""
        if os.environ.get(CHOOSE_BY) == "sizes":
            return {}
        return self.catalogue.published[self.view.id].corrections
