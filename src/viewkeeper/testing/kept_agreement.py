"""The same question where groups inside a view are kept in hidden views: those that must be, or all that can be updated, however
small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import duckdb

from viewkeeper.algebra.nodes import Project
from viewkeeper.generated_names import kept_groups
from viewkeeper.maintenance.build_plan import plan_first_load, plan_refresh, why_recomputed
from viewkeeper.maintenance.check_plan import check_plan
from viewkeeper.maintenance.group_state import ROWS
from viewkeeper.maintenance.kept_groups import (
    InnerGroups,
    QueryText,
    text_of,
    why_not_updated,
    with_kept_groups,
)
from viewkeeper.maintenance.plan import MaintenancePlan
from viewkeeper.maintenance.stored_shape import with_hidden_columns
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import BoundQuery, Input, bind_query
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.script import Fragment
from viewkeeper.testing.agreement import (
    Disagreement,
    Oracle,
    Outcome,
    Refresh,
    change_key,
    check_without_kept_groups,
    compare,
    confirm_violation,
    definition,
    typed_columns,
    types_of,
)
from viewkeeper.testing.bags import Row
from viewkeeper.testing.cases import Case
from viewkeeper.testing.changes import Rows
from viewkeeper.testing.duckdb_runner import DuckDbRun, InexactChangeSet, TableState


@dataclass(frozen=True)
class Chain:
    """A view over the hidden views that keep groups inside it, each after those that it reads."""

    hidden: tuple[ViewDefinition, ...]
    view: ViewDefinition

    @property
    def in_order(self) -> tuple[ViewDefinition, ...]:
        return (*self.hidden, self.view)


def check_case(database: duckdb.DuckDBPyConnection, case: Case) -> Outcome:
    """Whether the view, split as CREATE splits it where nothing is large, equals its query after each change; see
    `check_without_kept_groups` for what is raised."""
    return _checked(database, case, only_needed=True) or check_without_kept_groups(database, case)


def check_case_with_kept_groups(database: duckdb.DuckDBPyConnection, case: Case) -> Outcome | None:
    """As `check_case`, with every group inside the view kept that can be; None if there is none. The refreshes that are told
    are those of the view itself."""
    return _checked(database, case, only_needed=False)


def _checked(database: duckdb.DuckDBPyConnection, case: Case, only_needed: bool) -> Outcome | None:
    with database.cursor() as own, database.cursor() as plans:
        plans.execute("PRAGMA disable_optimizer")
        view = definition(plans, case)
        chain = over_kept_groups(plans, view, only_needed)
        if chain is None:
            return None
        oracle = Oracle(own, view.query, case)
        steps = list(pairwise(case.stream))
        done = _refreshes(plans, chain, case, steps, oracle)
        if len(steps) > 1:
            done += _refreshes(plans, chain, case, [(case.stream[0], case.stream[-1])], oracle)
        return Outcome(tuple(done))


def over_kept_groups(
    database: duckdb.DuckDBPyConnection, view: ViewDefinition, only_needed: bool = False
) -> Chain | None:
    """The view as CREATE would split it if every hidden view paid, or none that is not needed."""
    if not isinstance(view.algebra, Project):
        return None
    inputs = {found.object_id: found for found in view.query.inputs}
    hidden: list[ViewDefinition] = []

    def keep(groups: InnerGroups) -> Input | None:
        is_needed = groups.order_dependent is not None
        if not is_needed and (only_needed or why_not_updated(groups) is not None):
            return None
        query = _bound(text_of(groups.query), inputs)
        name = QualifiedName(view.name.schema, kept_groups(view.name.name, len(hidden) + 1))
        found = ViewDefinition(name, str(name), query, typed_columns(database, query), declared=view.declared)
        found = with_hidden_columns(found, lambda sql: types_of(database, sql))
        if not is_needed and all(each.name != ROWS for each in found.hidden):
            return None
        hidden.append(found)
        inputs[found.id] = Input(found.id, name, found.columns, name.relation_stem)
        return inputs[found.id]

    text = text_of(with_kept_groups(view.algebra, keep))
    if not hidden:
        return None
    query = _bound(text, inputs)
    names = [column.name for column in typed_columns(database, query)]
    assert names == [column.name for column in view.columns]
    over = with_hidden_columns(replace(view, query=query, hidden=()), lambda sql: types_of(database, sql))
    if why_recomputed(over) is not None and why_recomputed(view) is None:
        raise AssertionError(
            f"over its kept groups, {view.query.parsed.fragment.text} would be recomputed:\n{text}"
        )
    return Chain(tuple(hidden), over)


def _bound(text: QueryText, inputs: Mapping[str, Input]) -> BoundQuery:
    query = bind_query(Fragment.whole(text.text), lambda name: inputs[text.references[name.key]], list)
    if query.problems:
        raise query.problems[0]
    return query


def _refreshes(
    database: duckdb.DuckDBPyConnection,
    chain: Chain,
    case: Case,
    steps: Sequence[tuple[Rows, Rows]],
    oracle: Oracle,
) -> list[Refresh]:
    """Load the views and refresh them step by step, each with what the ones below it have just changed."""
    first = steps[0][0] if steps else case.stream[0]
    runs = {view.id: DuckDbRun(database, view) for view in chain.in_order}
    plans = {view.id: plan_first_load(view) for view in chain.in_order}
    held: dict[str, list[Row]] = {}
    for view in chain.in_order:
        runs[view.id].run(plans[view.id], _states(view, case, (first, held), (first, held)))
        held[view.id] = runs[view.id].visible()
    compare(runs[chain.view.id], oracle, case, plans[chain.view.id], first, first)
    done: list[Refresh] = []
    for before, after in steps:
        old, held = held, {}
        for view in chain.in_order:
            run = runs[view.id]
            try:
                plan = _refreshed(run, case, _states(view, case, (before, old), (after, held)), before, after)
            except Disagreement:
                if oracle.fails(after):
                    return done
                raise
            held[view.id] = run.visible()
            if plan is None:
                continue
            plans[view.id] = plan
            if view is chain.view:
                done.append(Refresh(plan.strategy, plan.reason, plan.facts, bool(run.violations)))
            if run.violations:
                confirm_violation(run, case, plan, before, after)
                return done
        if oracle.fails(after):
            return done
        compare(runs[chain.view.id], oracle, case, plans[chain.view.id], before, after)
    return done


def _refreshed(
    run: DuckDbRun, case: Case, states: Mapping[str, TableState], before: Rows, after: Rows
) -> MaintenancePlan | None:
    """Refresh one view; None if nothing that it reads has changed."""
    kinds = {name: state.kinds for name, state in states.items() if state.kinds}
    if not kinds:
        return None
    plan = plan_refresh(run.view, kinds)
    for problem in check_plan(plan):
        raise Disagreement(case, f"the plan of {run.view.name} is wrong: {problem}", plan, before, after)
    try:
        run.run(plan, states)
    except (duckdb.Error, InexactChangeSet) as error:
        raise Disagreement(
            case, f"the plan of {run.view.name} fails: {error}", plan, before, after
        ) from error
    return plan


_Moment = tuple[Rows, Mapping[str, Sequence[Row]]]
"""The rows of all tables, and of the hidden views as far as they are known."""


def _states(view: ViewDefinition, case: Case, before: _Moment, after: _Moment) -> dict[str, TableState]:
    states = {}
    for found in view.query.inputs:
        table = case.schema.by_id.get(found.object_id)
        if table is None:
            old, new = (held[found.object_id] for _, held in (before, after))
            states[found.object_id] = TableState(found.columns, old, new)
        else:
            old, new = (rows[found.object_id] for rows, _ in (before, after))
            states[found.object_id] = TableState(found.columns, old, new, change_key(case, table, view))
    return states
