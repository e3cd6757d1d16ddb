"""Chooses how a view is brought up to date, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Derived, Group, InnerJoin, Project, TopRows, Window, walk
from viewkeeper.facts.declared import Reliance
from viewkeeper.facts.foreign_keys import parent_joins
from viewkeeper.facts.order_dependence import order_dependence
from viewkeeper.generated_names import state_relation
from viewkeeper.maintenance.bag_changes import apply_to_view
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.differential.dropped import reliances
from viewkeeper.maintenance.differential.kinds import SHOWN_BY, Kinds
from viewkeeper.maintenance.differential.reread_view import reread_steps, shown_keys
from viewkeeper.maintenance.differential.rows_view import rows_steps
from viewkeeper.maintenance.differential.top_view import is_kept, top_steps
from viewkeeper.maintenance.differential.updated_view import update_steps
from viewkeeper.maintenance.group_state import ROWS, why_read_again
from viewkeeper.maintenance.plan import MaintenancePlan, State, Step, Strategy
from viewkeeper.maintenance.reading import checks_whole_tables, reading, saved_tables, tables_read
from viewkeeper.maintenance.recompute import plan_load, plan_recompute
from viewkeeper.maintenance.reliance_checks import checks_for, trusted
from viewkeeper.maintenance.rules.plan_leaving import plan_leaving_first
from viewkeeper.maintenance.rules.plan_rules import plan_by_rules
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import RefreshPolicy

ANY_CHANGE = frozenset({State.REMOVED, State.ADDED})
ANY_KEYED_CHANGE = frozenset({State.DELETED, State.INSERTED, State.OLD_UPDATED, State.NEW_UPDATED})


def unchanged_reason() -> str:
    return "nothing it reads has changed"


def why_recomputed(view: ViewDefinition) -> str | None:
    """Why a refresh of this view always recomputes it; None if it does not."""
    if view.policy is RefreshPolicy.FULL:
        return "the view was created with REFRESH FULL"
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return query.reason
    match query.source:
        case Group(_, keys) if not keys and not _is_updated(view):
            return "its one group would have to be read again whole"
        case Window(_, _, partition) if not partition:
            return "its window functions have no PARTITION BY in common: any change can reach every row"
        case Derived(_, TopRows()) if not is_kept(view, query):
            return "rows behind an OFFSET, or without LIMIT, can move with any change"
    call = _order_dependent(query)
    if call is not None:
        return f"{call} depends on the order in which Spark adds, and decides which rows there were"
    return None


def _order_dependent(query: Project) -> str | None:
    """A value by which the plan would have to find old rows although it may have other bits when it is computed again. Groups
    and partitions are found in the view by their keys, whatever they show."""
    match query.source:
        case Group(source, keys):
            return order_dependence(source).deciding(key.expression for key in keys).decisive
        case Window(source, _, partition) if shown_keys(query) is not None:
            return order_dependence(source).deciding(partition).decisive
        case _:
            found = order_dependence(query)
            return found.decisive or next(iter(found.values.values()), None)


def _why_rematerialized(view: ViewDefinition, kinds: Kinds) -> str | None:
    """The user's choice to evaluate the whole query after some operations."""
    for found in view.query.inputs:
        for operation, shown_by in SHOWN_BY.items():
            parts = kinds.get(found.object_id, frozenset())
            if (found.object_id, operation) in view.rematerialized and any(
                each <= parts for each in shown_by
            ):
                return f"REMATERIALIZE ON {operation.value} of {found.name} was asked for"
    return None


def _is_updated(view: ViewDefinition) -> bool:
    """Whether the groups of the view are updated from what is stored of them, and from values that stay as they are."""
    query = view.algebra
    assert isinstance(query, Project) and isinstance(query.source, Group)
    values = [each.expression for each in query.source.aggregates]
    is_kept = any(each.name == ROWS for each in view.hidden)
    return is_kept and order_dependence(query.source.source).in_any(values) is None


def plan_refresh(
    view: ViewDefinition,
    kinds: Kinds,
    why_not: str | None = None,
    verified: frozenset[Reliance] = frozenset(),
) -> MaintenancePlan:
    """The plan for a refresh after these changes.

    `why_not` is what speaks against a differential one now, `verified` the constraints that are known to hold before
    the changes.
    """
    changed = ", ".join(str(name) for name in _changed(view, kinds))
    reasons = (why_recomputed(view), why_not, _why_rematerialized(view, kinds))
    reason = next((each for each in reasons if each is not None), None)
    if reason is not None:
        return plan_recompute(view, f"{changed} changed; {reason}" if changed else reason)
    asked = (frozenset(kinds.items()), verified)
    if asked not in view.plans:
        view.plans[asked] = _with_trust(view, _least_reading(view, kinds, verified, f"{changed} changed"))
    return view.plans[asked]


def _least_reading(
    view: ViewDefinition, kinds: Kinds, verified: frozenset[Reliance], reason: str
) -> MaintenancePlan:
    """The plan that reads least. The rules of the view are taken if their keys are known to hold, if they read no more
    than the changes alone would, and less than a start by rules, which relies on fewer keys."""
    differential = plan_differential(view, kinds, verified, reason)
    leaving = plan_leaving_first(view, kinds, verified, reason)
    rules = plan_by_rules(view, kinds, verified, reason)
    if rules is not None and checks_whole_tables(rules):
        rules = None
    if leaving is not None and reading(leaving) < reading(differential):
        if rules is not None and reading(rules) < reading(leaving):
            return _with_saving(rules, differential)
        saved = ", ".join(saved_tables(leaving, differential))
        found = f"what leaves is found in the view itself, {saved} need not be read for it"
        return replace(leaving, reason=f"{reason}; {found}")
    if rules is None or reading(rules) > reading(differential):
        return differential
    return _with_saving(rules, differential)


def _with_saving(rules: MaintenancePlan, differential: MaintenancePlan) -> MaintenancePlan:
    saved = [name for name in tables_read(differential) if name not in tables_read(rules)]
    why = f"; {', '.join(saved)} need not be read" if saved else ", and read no more than the changes alone"
    return replace(rules, reason=f"{rules.reason}{why}")


def plan_differential(
    view: ViewDefinition, kinds: Kinds, verified: frozenset[Reliance], reason: str
) -> MaintenancePlan:
    """The floor: every change found by the changes and states of what the query reads."""
    query = view.algebra
    assert isinstance(query, Project)
    derivation = Derivation(view.stem, query, kinds, view.declared, change_keys=view.change_keys)
    steps = _steps(view, query, derivation)
    relies_on = reliances(derivation.dropped, view.change_keys)
    return MaintenancePlan(
        view.name,
        Strategy.DIFFERENTIAL,
        reason,
        (*checks_for(view, relies_on, kinds, verified), *steps),
        (*map(str, derivation.dropped), *_facts_of_groups(view, query)),
        relies_on,
    )


def _facts_of_groups(view: ViewDefinition, query: Project) -> tuple[str, ...]:
    if not isinstance(query.source, Group) or _is_updated(view):
        return ()
    return (f"affected groups are read again: {why_read_again(query, view.stored)}",)


def _steps(view: ViewDefinition, query: Project, derivation: Derivation) -> tuple[Step, ...]:
    match query.source:
        case Group():
            steps = (update_steps if _is_updated(view) else reread_steps)(view, query, derivation)
        case Window() if shown_keys(query) is not None:
            steps = reread_steps(view, query, derivation)
        case Derived(_, TopRows()):
            steps = top_steps(view, query, derivation)
        case _:
            steps = rows_steps(view, query, derivation)
    if not steps:
        return ()
    changes = state_relation(view.stem, "changes")
    return (*steps, apply_to_view(view.stem, changes, view.stored))


def _with_trust(view: ViewDefinition, plan: MaintenancePlan) -> MaintenancePlan:
    names = trusted(view, plan.relies_on | plan.spot_checked)
    if not names:
        return plan
    return replace(plan, reason=f"{plan.reason}; {', '.join(names)} trusted without a check (RELY)")


def child_parent_pairs(view: ViewDefinition) -> frozenset[tuple[str, str]]:
    """The ids of tables that the query joins along a foreign key: child and parent."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return frozenset()
    return frozenset(
        (found.child_id, found.foreign_key.parent_id)
        for node in walk(query)
        if isinstance(node, InnerJoin)
        for found in parent_joins(node, view.declared)
    )


def keyed_inputs(view: ViewDefinition) -> frozenset[str]:
    """The tables whose changes are to be told apart by key: parents, and those of whose operations some are special."""
    chosen = {object_id for object_id, _ in view.rematerialized}
    return frozenset(view.change_keys) | chosen


def _changed(view: ViewDefinition, kinds: Kinds) -> Sequence[QualifiedName]:
    return [found.name for found in view.query.inputs if found.object_id in kinds]


def plan_first_load(view: ViewDefinition) -> MaintenancePlan:
    return plan_load(view, "the view is new")
