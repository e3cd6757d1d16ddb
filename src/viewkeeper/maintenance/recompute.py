"""The recompute strategy: evaluate the whole query, and write only the bag difference."""

from __future__ import annotations

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.facts.keys import key_of
from viewkeeper.generated_names import query_relation, state_relation
from viewkeeper.maintenance.bag_changes import apply_to_view, difference, numbered_rows
from viewkeeper.maintenance.plan import (
    Derive,
    LoadRows,
    MaintenancePlan,
    Read,
    State,
    Strategy,
    WriteChangeSet,
)
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.maintenance.whole_query import stored_query, visible_query
from viewkeeper.sql.rendering import select_as_stored
from viewkeeper.sql.types import Simple, as_stored


def plan_load(view: ViewDefinition, reason: str) -> MaintenancePlan:
    """The first load of a view."""
    evaluate = _evaluate(view)
    load = LoadRows(numbered_rows(evaluate.relation, view.stored, _clustering(view)), ())
    return MaintenancePlan(view.name, Strategy.RECOMPUTE, reason, (evaluate, load))


def _clustering(view: ViewDefinition) -> tuple[str, ...]:
    """The columns of the view's key: rows with near keys shall lie together, so that few files hold what changes."""
    key = None if isinstance(view.algebra, OutsideAlgebra) else key_of(view.algebra, view.declared)
    ordered = {each.name for each in view.columns if isinstance(each.data_type, Simple)}
    return () if key is None or not ordered.issuperset(key.columns) else key.columns


def plan_recompute(view: ViewDefinition, reason: str) -> MaintenancePlan:
    """Recompute an existing view, and change only the rows that differ."""
    evaluate = _evaluate(view)
    old = Read(state_relation(view.stem, "old"), view.id, view.name, State.OLD)
    changes = state_relation(view.stem, "changes")
    return MaintenancePlan(
        view.name,
        Strategy.RECOMPUTE,
        reason,
        (
            evaluate,
            WriteChangeSet(difference(evaluate.relation, old.relation, view.stored), (old,)),
            apply_to_view(view.stem, changes, view.stored),
        ),
    )


def _evaluate(view: ViewDefinition) -> Derive:
    """The query with all columns of the view's table."""
    title, relation = "evaluate the query", query_relation(view.stem)
    if view.hidden:
        assert not isinstance(view.algebra, OutsideAlgebra)
        sql, reads = stored_query(view, view.algebra, State.NEW)
        return Derive(title, relation, sql, reads)
    reads = tuple(
        Read(state_relation(found.relation, "new"), found.object_id, found.name, State.NEW)
        for found in view.query.inputs
    )
    text = visible_query(view, lambda found: state_relation(found.relation, "new"))
    if any(as_stored(each.data_type) != each.data_type for each in view.columns):
        text = select_as_stored(text, [(each.name, each.data_type) for each in view.columns])
    return Derive(title, relation, text, reads)
