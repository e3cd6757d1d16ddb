"""Chooses how a view is brought up to date, and says why."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.maintenance.plan import MaintenancePlan
from viewkeeper.maintenance.recompute import plan_load, plan_recompute
from viewkeeper.sql.binding import BoundQuery, Column
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import RefreshPolicy

ONLY_RECOMPUTE = "this version of Viewkeeper maintains views by recomputing their query"


def unchanged_reason() -> str:
    return "nothing it reads has changed"


def recompute_reason(policy: RefreshPolicy) -> str:
    return "the view was created with REFRESH FULL" if policy is RefreshPolicy.FULL else ONLY_RECOMPUTE


def plan_refresh(
    view: QualifiedName,
    view_id: str,
    query: BoundQuery,
    columns: Sequence[Column],
    policy: RefreshPolicy,
    changed: Sequence[QualifiedName],
) -> MaintenancePlan:
    """The plan for a refresh after changes of these inputs."""
    names = ", ".join(str(name) for name in changed)
    reason = f"{names} changed; {recompute_reason(policy)}" if names else recompute_reason(policy)
    return plan_recompute(view, view_id, query, columns, reason)


def plan_first_load(view: QualifiedName, query: BoundQuery, columns: Sequence[Column]) -> MaintenancePlan:
    return plan_load(view, query, columns, "the view is new")
