"""Which rules of a view a refresh runs as they are printed, and what it does instead of the others."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.facts.declared import Reliance
from viewkeeper.maintenance.build_plan import keyed_inputs, plan_refresh
from viewkeeper.maintenance.differential.kinds import Kinds
from viewkeeper.maintenance.plan import CheckConstraint, MaintenancePlan, State, Strategy
from viewkeeper.maintenance.reading import checks_whole_tables
from viewkeeper.maintenance.rules.plan_rules import plan_by_rules, why_not_run
from viewkeeper.maintenance.rules.rule import Certainty, Effect, Rule, RuleRun
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import Operation

_AS_PRINTED = "runs as printed"
_BY_CHANGES = "found by the changes of the tables instead"

_PARTS = {
    Operation.INSERT: {State.ADDED},
    Operation.DELETE: {State.REMOVED},
    Operation.UPDATE: {State.REMOVED, State.ADDED},
}
_KEYED_PARTS = {
    Operation.INSERT: {State.INSERTED},
    Operation.DELETE: {State.DELETED},
    Operation.UPDATE: {State.OLD_UPDATED, State.NEW_UPDATED},
}


def rule_runs(
    view: ViewDefinition, rules: RuleSet, verified: frozenset[Reliance] = frozenset()
) -> Mapping[str, RuleRun]:
    """By the name of the rule. `view` is as a refresh sees it: with the keys that it would rely on."""
    why_not = why_not_run(view, view.declared)
    plans: dict[frozenset[object], MaintenancePlan] = {}
    runs = {}
    for rule in rules.rules:
        kinds = _kinds(view, rule)
        happened = frozenset[object](kinds.items())
        if happened not in plans:
            plans[happened] = plan_refresh(view, kinds, None, verified)
        runs[rule.name] = _run(rule, plans[happened], why_not) or _why_not(view, kinds, verified)
    return runs


def _run(rule: Rule, chosen: MaintenancePlan, why_not: str | None) -> RuleRun | None:
    """What becomes of a rule, as far as the plan that is chosen after its operation tells."""
    if rule.effect is Effect.REMATERIALIZE:
        return RuleRun(True, _AS_PRINTED)
    if chosen.strategy is Strategy.RULES and (why_not is None or _is_decided_by_the_view(rule)):
        checked = dict.fromkeys(each.constraint for each in chosen.steps if isinstance(each, CheckConstraint))
        after = f", after a check of {', '.join(checked)}" if checked else ""
        return RuleRun(True, _AS_PRINTED + after)
    return None if why_not is None else RuleRun(False, f"{_BY_CHANGES}, because {why_not}")


def _why_not(view: ViewDefinition, kinds: Kinds, verified: frozenset[Reliance]) -> RuleRun:
    """Why another plan was chosen, though rules could keep the view."""
    rules = plan_by_rules(view, kinds, verified, "")
    if rules is None or not checks_whole_tables(rules):
        return RuleRun(False, f"{_BY_CHANGES}, which reads less")
    checks = [each for each in rules.steps if isinstance(each, CheckConstraint)]
    names = ", ".join(dict.fromkeys(each.constraint for each in checks))
    return RuleRun(False, f"{_BY_CHANGES}, unless {names} is trusted: RELY")


def _is_decided_by_the_view(rule: Rule) -> bool:
    return rule.effect is Effect.DELETE and all(
        each.certainty is Certainty.BY_THE_VIEW for each in rule.actions
    )


def _kinds(view: ViewDefinition, rule: Rule) -> Kinds:
    keyed = keyed_inputs(view)
    return {
        each.object_id: frozenset((_KEYED_PARTS if each.object_id in keyed else _PARTS)[each.operation])
        for each in rule.triggers
    }
