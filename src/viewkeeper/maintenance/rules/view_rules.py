"""The analysis, the rules and the advice of one view, together."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.facts.declared import Declarations
from viewkeeper.facts.safety.advice import Advice, advice
from viewkeeper.facts.safety.selects import Unread
from viewkeeper.facts.safety.verdicts import ViewAnalysis
from viewkeeper.maintenance.rules.derive import derive_rules
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.view_analysis import analysis_of
from viewkeeper.maintenance.view_definition import ViewDefinition


@dataclass(frozen=True)
class ViewRules:
    analysis: ViewAnalysis
    rules: RuleSet
    advice: tuple[Advice, ...]


def without_rules(view: ViewDefinition, reason: str) -> RuleSet:
    """A view that has no rules, with the reason."""
    names = tuple(column.name for column in view.columns)
    return RuleSet(view.name, view.stem, names, Unread(reason), unread=reason)


def rules_for(view: ViewDefinition, declared: Declarations) -> ViewRules | None:
    """What is found out about a view if everything that is declared holds; None if its query is always recomputed."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return None
    analysis = analysis_of(view, declared)
    names = tuple(column.name for column in view.columns)
    rules = derive_rules(view.name, view.stem, names, analysis, declared, view.rematerialized)
    return ViewRules(analysis, rules, advice(analysis, declared))
