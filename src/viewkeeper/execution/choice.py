"""AUTO: the cheaper of two plans, by what they read and what the view's past refreshes took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.execution.input_changes import InputChanges
from viewkeeper.execution.workspace import Workspace
from viewkeeper.maintenance.build_plan import plan_refresh
from viewkeeper.maintenance.cost import Sizes, corrected, predicted_seconds, why_recompute
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.storage.catalogue import Catalogue
from viewkeeper.storage.records import ViewRecord


@dataclass(frozen=True)
class Choice:
    plan: MaintenancePlan
    predicted: float


def choose(
    workspace: Workspace,
    catalogue: Catalogue,
    view: ViewRecord,
    definition: ViewDefinition,
    plan: MaintenancePlan,
    changes: Mapping[str, InputChanges],
) -> Choice:
    """The plan to run. Only AUTO may recompute because it is cheaper."""
    changed = {input_id: found.rows for input_id, found in changes.items()}
    rows = {
        each.object_id: workspace.log.row_count(workspace.data_address(catalogue.object(each.object_id)))
        for each in definition.query.inputs
    }
    rows[view.id] = workspace.log.row_count(workspace.layout.rows(view.location))
    sizes = Sizes(rows, changed)
    predicted = predicted_seconds(plan, sizes)
    if view.policy is not RefreshPolicy.AUTO or plan.strategy is Strategy.RECOMPUTE:
        return Choice(plan, predicted)
    kinds = {input_id: found.kinds for input_id, found in changes.items()}
    whole = plan_refresh(definition, kinds, "")
    predicted_whole = predicted_seconds(whole, sizes)
    applied, whole_again = (_past(catalogue, view, each) for each in (plan.strategy, Strategy.RECOMPUTE))
    reason = why_recompute(
        corrected(predicted, applied or whole_again),
        corrected(predicted_whole, whole_again or applied),
        sum(changed.values()),
    )
    if reason is None:
        return Choice(plan, predicted)
    return Choice(plan_refresh(definition, kinds, reason), predicted_whole)


def _past(catalogue: Catalogue, view: ViewRecord, strategy: Strategy) -> tuple[float, float] | None:
    """What was predicted for the last such refresh of the view, and what it took. Where there was none of the kind, the
    other kind's tells how fast this machine is."""
    for entry in reversed(catalogue.recent_history):
        if entry.view_id == view.id and entry.strategy == strategy.value and entry.predicted is not None:
            return entry.predicted, entry.seconds
    return None
