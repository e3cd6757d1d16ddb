"""The plan of a refresh that starts with rules: first what the view alone decides, then the rest by its changes.

For views whose copies are counted, and where the keys are checked rather than trusted. It is taken where it reads less of the
tables than a plan that finds everything by joins.
"""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, Project
from viewkeeper.algebra.to_sql import as_relation
from viewkeeper.facts.declared import Reliance, UniqueKey
from viewkeeper.generated_names import SIGN, SIGNED_COUNT, state_relation
from viewkeeper.maintenance.bag_changes import apply_to_view
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.differential.dropped import reliances
from viewkeeper.maintenance.differential.kinds import GAINS, Kinds
from viewkeeper.maintenance.differential.rows_view import rows_steps
from viewkeeper.maintenance.differential.updated_view import update_steps
from viewkeeper.maintenance.plan import (
    CheckConstraint,
    Limit,
    MaintenancePlan,
    Read,
    State,
    Step,
    Strategy,
)
from viewkeeper.maintenance.reliance_checks import checks_for
from viewkeeper.maintenance.rules.leaving import (
    Leaving,
    leaving_by_view,
    leaving_rows_of_view,
    only_leaving_steps,
    without,
)
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import (
    alias,
    all_of,
    call,
    column,
    literal,
    relation_named,
    render,
    select_from,
    union_all,
)


def plan_leaving_first(
    view: ViewDefinition, kinds: Kinds, verified: frozenset[Reliance], reason: str
) -> MaintenancePlan | None:
    """The plan, if the view alone decides something."""
    query = view.algebra
    assert isinstance(query, Project)
    leaving = leaving_by_view(view, kinds)
    if not leaving:
        return None
    rest = without(kinds, leaving)
    seen = frozenset(each.table.object_id for each in leaving)
    derivation = Derivation(view.stem, query, rest, view.declared, seen, change_keys=view.change_keys)
    steps = _steps(view, query, derivation, leaving)
    if _reads_what_is_not_known(steps, kinds):
        return None
    changes = state_relation(view.stem, "changes")
    relies_on = reliances(derivation.dropped, view.change_keys)
    spots = {each.reliance: each for each in leaving if each.reliance is not None}
    checks = [
        check
        for reliance, each in spots.items()
        if reliance not in relies_on | verified and (check := _spot_check(each, kinds)) is not None
    ]
    return MaintenancePlan(
        view.name,
        Strategy.RULES,
        reason,
        (
            *checks_for(view, relies_on, kinds, verified),
            *checks,
            *steps,
            apply_to_view(view.stem, changes, view.stored),
        ),
        (*map(str, leaving), *map(str, derivation.dropped)),
        relies_on,
        frozenset(spots) - relies_on,
    )


def _steps(
    view: ViewDefinition, query: Project, derivation: Derivation, leaving: list[Leaving]
) -> tuple[Step, ...]:
    if not derivation.is_changed(query):
        rows = leaving_rows_of_view(view, derivation, leaving, by_count=False)
        return only_leaving_steps(view, derivation, rows)
    is_distinct = isinstance(query.source, Group)
    rows = leaving_rows_of_view(view, derivation, leaving, by_count=is_distinct)
    return (update_steps if is_distinct else rows_steps)(view, query, derivation, rows)


def _reads_what_is_not_known(steps: tuple[Step, ...], kinds: Kinds) -> bool:
    """Whether a step reads a table in between its losses and its gains, which only changes by key can tell."""
    return any(
        read.state is State.BETWEEN and kinds[read.object_id] & {State.REMOVED, State.ADDED}
        for step in steps
        for read in step.reads
    )


def _spot_check(leaving: Leaving, kinds: Kinds) -> CheckConstraint | None:
    """That no row with a key that went is left, but for rows that came: else the view would lose rows it should keep."""
    key = leaving.key
    assert key is not None
    if key.rely:
        return None
    table = leaving.table
    removed = _read(table, State.REMOVED)
    new = _read(table, State.NEW, Limit(key.columns, removed.relation, key.columns))
    reads = [removed, new]
    counted: exp.Query = _counted(new.relation, key, 1)
    if kinds[table.object_id] & GAINS:
        added = _read(table, State.ADDED)
        reads.append(added)
        counted = union_all(counted, _counted(added.relation, key, -1))
    total = call("SUM", column(SIGN))
    rows = as_relation(counted, "counted")
    same = all_of(
        exp.EQ(this=column(name, "counted"), expression=column(name, removed.relation))
        for name in key.columns
    )
    left = (
        select_from(rows, [*(column(name, "counted") for name in key.columns), alias(total, SIGNED_COUNT)])
        .join(relation_named(removed.relation), on=same, join_type="left semi")
        .group_by(*(column(name, "counted") for name in key.columns))
        .having(exp.GT(this=total.copy(), expression=literal(0)))
    )
    what = "rows that went have left no other row with their key"
    return CheckConstraint(table.name, key.name, what, render(left), tuple(reads))


def _counted(relation: str, key: UniqueKey, count: int) -> exp.Select:
    return select_from(
        relation_named(relation),
        [*(column(name) for name in key.columns), alias(literal(count), SIGN)],
    )


def _read(table: Input, state: State, limit: Limit | None = None) -> Read:
    plain = state_relation(table.relation, state.value)
    return Read(plain if limit is None else limit.name(plain), table.object_id, table.name, state, limit)
