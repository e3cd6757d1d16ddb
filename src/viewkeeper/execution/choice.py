"""AUTO: the cheaper of two plans, by what they read and what the view's past refreshes took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.execution.input_changes import InputChanges
from viewkeeper.execution.workspace import Workspace
from viewkeeper.maintenance.build_plan import plan_refresh
from viewkeeper.maintenance.cost import Sizes, predicted_seconds, why_recompute
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue, ObjectRecord
from viewkeeper.storage.records import ViewRecord


@dataclass(frozen=True)
class Choice:
    plan: MaintenancePlan
    seconds: float
    """Predicted, before they are corrected by the past."""


def predicted(
    workspace: Workspace,
    catalogue: Catalogue,
    plan: MaintenancePlan,
    changes: Mapping[str, InputChanges] | None = None,
) -> float:
    """What a plan will take by the sizes of what it reads, before that is corrected by the past."""
    read = {each.object_id for step in plan.steps for each in step.reads if not each.state.is_change}
    records = [catalogue.object(object_id) for object_id in sorted(read)]
    sizes = Sizes(
        {each.id: workspace.log.row_count(workspace.data_address(each)) for each in records},
        {input_id: found.rows for input_id, found in (changes or {}).items()},
        {each.id: _likely_keys(each) for each in records},
    )
    return predicted_seconds(plan, sizes)


def _likely_keys(record: ObjectRecord) -> list[frozenset[str]]:
    """Keys as declared, for a prediction may be wrong. Where views are looked into, it is for a row by each value."""
    if isinstance(record, ViewRecord):
        return [frozenset()]
    return [frozenset(name.lower() for name in key.columns) for key in record.keys]


def choose(
    workspace: Workspace,
    catalogue: Catalogue,
    view: ViewRecord,
    definition: ViewDefinition,
    plan: MaintenancePlan,
    changes: Mapping[str, InputChanges],
) -> Choice:
    """The plan to run. Only AUTO may recompute because it is cheaper."""
    seconds = predicted(workspace, catalogue, plan, changes)
    if view.policy is not RefreshPolicy.AUTO or plan.strategy is Strategy.RECOMPUTE:
        return Choice(plan, seconds)
    kinds = {input_id: found.kinds for input_id, found in changes.items()}
    seconds_whole = predicted(workspace, catalogue, plan_refresh(definition, kinds, ""))
    corrections = catalogue.published[view.id].corrections
    reason = why_recompute(
        seconds * corrections.get(plan.strategy.value, 1.0),
        seconds_whole * corrections.get(Strategy.RECOMPUTE.value, 1.0),
        sum(found.rows for found in changes.values()),
    )
    if reason is None:
        return Choice(plan, seconds)
    return Choice(plan_refresh(definition, kinds, reason), seconds_whole)
