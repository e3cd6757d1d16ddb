"""The plan of a refresh by rules: all rules that the changes trigger, in one step.

Deletions run before insertions, and what a rule reads is not what another rule changes: tables before and after the window,
and changed parts. So the rules need not run one after the other. Each marks the rows of the view that it means, and

    a row leaves    if it was in the view, some rule deletes it, and none inserts it
    a row enters    if it was not in the view, and some rule inserts it

The view is asked only for rows of which the rules do not know whether it has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import Project
from viewkeeper.facts.declared import Declarations, Reliance
from viewkeeper.facts.safety.common_types import why_not_compared
from viewkeeper.generated_names import ENTERS, LEAVES, OLD_COUNT, state_relation
from viewkeeper.maintenance.bag_changes import apply_to_view, set_changes, touched_rows
from viewkeeper.maintenance.differential.derivation import Derivation, union
from viewkeeper.maintenance.differential.kinds import GAINS, LOSSES, SHOWN_BY, Kinds
from viewkeeper.maintenance.differential.limits import Limits, Values, values_in
from viewkeeper.maintenance.differential.rows_view import old_rows
from viewkeeper.maintenance.plan import (
    Derive,
    Limit,
    MaintenancePlan,
    Read,
    State,
    Strategy,
    WriteChangeSet,
)
from viewkeeper.maintenance.reliance_checks import checks_for
from viewkeeper.maintenance.rules.derive import derive_rules
from viewkeeper.maintenance.rules.limited_sql import LimitedSql
from viewkeeper.maintenance.rules.rule import Action, Certainty, Effect, Rule, TransitionTable, Trigger
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.rule_sql import checked_rows, deleted_rows
from viewkeeper.maintenance.rules.view_analysis import analysis_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.binding import Input
from viewkeeper.sql.rendering import alias, literal


def plan_by_rules(
    view: ViewDefinition, kinds: Kinds, verified: frozenset[Reliance], reason: str
) -> MaintenancePlan | None:
    """The plan, if rules keep the view and the changes trigger some."""
    if why_not_run(view, view.declared) is not None:
        return None
    rules = _rules_of(view)
    assert isinstance(view.algebra, Project)
    triggered = [each for each in rules.rules if any(_has_happened(one, kinds) for one in each.triggers)]
    if not triggered:
        return None
    derivation = Derivation(view.stem, view.algebra, kinds, view.declared, change_keys=view.change_keys)
    fused = _Fused(view, rules, derivation, kinds)
    actions = [(rule, action) for rule in triggered for action in rule.actions]
    relies_on = frozenset[Reliance]().union(*(action.relies_on for _, action in actions))
    names = ", ".join(each.name for each in triggered)
    changes = state_relation(view.stem, "changes")
    return MaintenancePlan(
        view.name,
        Strategy.RULES,
        f"{reason}; rules tell what leaves and enters",
        (
            *checks_for(view, relies_on, kinds, verified),
            *fused.steps(actions, names),
            apply_to_view(view.stem, changes, view.stored),
        ),
        (f"rules: {names}",),
        relies_on,
    )


def why_not_run(view: ViewDefinition, declared: Declarations) -> str | None:
    """Why a refresh does not run the rules of a view, as a clause; None if it does."""
    if isinstance(view.algebra, OutsideAlgebra):
        return view.algebra.reason
    analysis = analysis_of(view, declared)
    if analysis.unread is not None:
        return analysis.unread
    if analysis.duplicates.possible:
        return "copies of its rows are counted"
    if view.hidden:
        return "the view stores how often each of its rows is made, and rules do not tell"
    return why_not_compared(analysis.selection, view.columns)


def _rules_of(view: ViewDefinition) -> RuleSet:
    query = view.algebra
    assert isinstance(query, Project)
    names = tuple(each.name for each in view.columns)
    analysis = analysis_of(view, view.declared)
    return derive_rules(view.name, view.stem, names, analysis, view.declared)


def _has_happened(trigger: Trigger, kinds: Kinds) -> bool:
    parts = kinds.get(trigger.object_id, frozenset())
    return any(each <= parts for each in SHOWN_BY[trigger.operation])


@dataclass(frozen=True)
class _Fused:
    """Writes the actions of triggered rules over the relations of a plan."""

    view: ViewDefinition
    rules: RuleSet
    derivation: Derivation
    kinds: Kinds

    def steps(
        self, actions: Sequence[tuple[Rule, Action]], names: str
    ) -> tuple[Derive | WriteChangeSet, ...]:
        selects: list[exp.Select] = []
        for rule, action in actions:
            select = self._marked(rule, action)
            if select not in selects:  # A deletion and the old half of an update are the same action.
                selects.append(select)
        candidates = self.derivation.derive(
            f"rows that rules delete or insert: {names}", "candidates", union(selects), ends=True
        )
        if all(_knows_the_view(rule, action) for rule, action in actions):
            return (
                *self.derivation.steps,
                WriteChangeSet(set_changes(candidates, None, self.view.stored), ()),
            )
        columns = tuple(each.name for each in self.view.stored)
        limit = Limit(columns, candidates, columns, keeps_nulls=True)
        alike = Read(state_relation(self.view.stem, "alike"), self.view.id, self.view.name, State.OLD, limit)
        touched = state_relation(self.view.stem, "touched")
        return (
            *self.derivation.steps,
            Derive(
                "find these rows in the view",
                touched,
                touched_rows(alike.relation, candidates, self.view.stored),
                (alike,),
            ),
            WriteChangeSet(set_changes(candidates, touched, self.view.stored), ()),
        )

    def _marked(self, rule: Rule, action: Action) -> exp.Select:
        """The rows that an action means, with what it does to them."""
        deletes = rule.effect is Effect.DELETE
        if action.certainty is Certainty.BY_THE_VIEW:
            rows = deleted_rows(self.rules, action, state_relation(self.rules.stem, State.OLD.value))
        else:
            rows = checked_rows(self.rules, action, action.checks_of_tables)
        limited = LimitedSql(
            lambda table: self._starts(action.tables, table),
            lambda table, limits: self._relation(action.tables, table, limits),
            lambda table, limits: self._reached(action.tables, table, limits),
        )
        marks = {LEAVES: deletes, ENTERS: not deletes, OLD_COUNT: deletes and action.was_in_view}
        return limited.write(rows).select(
            *(alias(literal(int(value)), name) for name, value in marks.items())
        )

    def _starts(self, tables: Mapping[str, TransitionTable], table: exp.Table) -> Limits:
        found = tables.get(table.name)
        if found is None or found.table is None or not found.state.is_change:
            return {}
        return values_in(self._part(found.table, found.state), table.alias_or_name, found.table.columns)

    def _part(self, table: Input, state: State) -> str:
        """The changed part; both kinds of losses, and both kinds of gains, are read as one."""
        part = State.REMOVED if state in LOSSES else State.ADDED
        assert self.kinds[table.object_id] & (LOSSES if part is State.REMOVED else GAINS)
        read = Read(state_relation(table.relation, part.value), table.object_id, table.name, part)
        return self.derivation.known(read).relation

    def _relation(self, tables: Mapping[str, TransitionTable], table: exp.Table, limits: Limits) -> str:
        found = tables.get(table.name)
        if found is None or found.table is None:
            return self._view_rows(table, limits)
        if found.state.is_change:
            return self._part(found.table, found.state)
        return self.derivation.table_read(found.table, found.state, _of(table, limits)).relation

    def _reached(self, tables: Mapping[str, TransitionTable], table: exp.Table, limits: Limits) -> Limits:
        """The values in the columns of a table of which few rows are read."""
        found = tables.get(table.name)
        if found is None or found.table is None or found.state.is_change:
            return {}
        read = self.derivation.table_read(found.table, found.state, _of(table, limits))
        return (
            {} if read.limit is None else values_in(read.relation, table.alias_or_name, found.table.columns)
        )

    def _view_rows(self, table: exp.Table, limits: Limits) -> str:
        """The view before the changes, where it has the values of the part that is found in it."""
        pairs = [
            (each.name, values)
            for each in self.view.columns
            if (values := limits.get((table.alias_or_name, each.name.lower()))) is not None
        ]
        if not pairs:
            return self.derivation.known(old_rows(self.view)).relation
        first = pairs[0][1]
        same = [(name, values.column) for name, values in pairs if values.relation == first.relation]
        own, changed = zip(*same, strict=True)
        keeps_nulls = any(values.or_null for _, values in pairs)
        limit = Limit(own, first.relation, changed, keeps_nulls)
        return self.derivation.known(old_rows(self.view, limit)).relation


def _of(table: exp.Table, limits: Limits) -> dict[str, Values]:
    return {name: values for (of, name), values in limits.items() if of == table.alias_or_name}


def _knows_the_view(rule: Rule, action: Action) -> bool:
    """Whether it is certain that the view has the rows of a deletion, or has not those of an insertion."""
    return action.was_in_view if rule.effect is Effect.DELETE else action.certainty is Certainty.BY_KEY
