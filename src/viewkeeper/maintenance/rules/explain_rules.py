"""Verdicts, advice and rules as people read them, and as JSON with stable names."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from viewkeeper.facts.safety.advice import Advice
from viewkeeper.facts.safety.verdicts import Place, ReferenceVerdict, ViewAnalysis
from viewkeeper.maintenance.rules.rule import Action, Certainty, Effect, Rule, RuleRun
from viewkeeper.maintenance.rules.rule_set import RuleSet
from viewkeeper.maintenance.rules.rule_sql import shown_sql

_HOW = {
    Certainty.BY_THE_VIEW: "by the view alone",
    Certainty.BY_KEY: "by the changed rows",
    Certainty.BLOCKED: "by the changed rows",
    Certainty.EXCLUDED: "by the changed rows",
    Certainty.CHECKED: "by the changed rows, each row of the view looked up again",
    Certainty.COUNTED: "by counting copies",
}


def explain_verdicts(analysis: ViewAnalysis, rules: RuleSet, advice: tuple[Advice, ...]) -> list[str]:
    """Whether the view can hold duplicates, which references are safe, what each operation leads to, what would help."""
    possible = "possible" if analysis.duplicates.possible else "not possible"
    lines = ["the analysis:", f"  duplicates: {possible}; {analysis.duplicates.reason}"]
    if rules.unread is not None:
        lines.append(f"  rules: none, because {rules.unread}; every change goes by the refresh below")
    lines += [f"  {_verdict(each)}" for each in analysis.references]
    lines += [f"  {each['on']}: {each['maintained']}{each['paper']}" for each in _operations(rules)]
    lines += [f"  advice: {each}" for each in advice]
    return [*lines, ""]


def explain_rules(rules: RuleSet, runs: Mapping[str, RuleRun]) -> list[str]:
    """Every rule with its trigger, its place in the order, what a refresh makes of it, and its SQL."""
    if rules.unread is not None:
        return [f"there are no rules for {rules.view}: {rules.unread}."]
    lines: list[str] = []
    for rule in rules.rules:
        lines.append(f"rule {rule.name}")
        lines.append(f"  when {', '.join(map(str, rule.triggers))}")
        if rule.reason:
            lines.append(f"  because {rule.reason}")
        if rule.anew_in_the_paper:
            words = " and ".join(each.value for each in rule.anew_in_the_paper)
            lines.append(f"  the published scheme evaluates the whole view on {words}")
        if rule.precedes:
            lines.append(f"  precedes {', '.join(rule.precedes)}")
        lines.append(f"  in a refresh: {runs[rule.name].how}")
        lines += [textwrap.indent(shown_sql(rules, rule), "    "), ""]
    return lines


def analysis_json(
    analysis: ViewAnalysis, rules: RuleSet, advice: tuple[Advice, ...], runs: Mapping[str, RuleRun]
) -> dict[str, Any]:
    return {
        **analysis.to_json(),
        "rules": [rule.to_json(shown_sql(rules, rule), runs[rule.name]) for rule in rules.rules],
        "advice": [each.to_json() for each in advice],
    }


def _verdict(verdict: ReferenceVerdict) -> str:
    reference = verdict.reference
    if reference.place is Place.NEGATIVE:
        safe = f"{'I-safe' if verdict.i_safe else 'not I-safe'}, {'DU-safe' if verdict.du_safe else 'not DU-safe'}"
    else:
        safe = "safe" if verdict.safe else "not safe"
    name = str(reference.table)
    shown = name if reference.scan.alias == name else f"{name} {reference.scan.alias}"
    return f"{shown} ({reference.place.value}): {safe}; {verdict.reason}"


def _operations(rules: RuleSet) -> list[dict[str, str]]:
    found = []
    for trigger in rules.triggers:
        chosen = rules.triggered_by(trigger)
        paper = any(trigger.operation in each.anew_in_the_paper for each in chosen)
        columns = f" of {', '.join(trigger.columns)}" if trigger.columns else ""
        found.append(
            {
                "on": f"{trigger.operation.value} {trigger.table}{columns}",
                "maintained": "; ".join(
                    dict.fromkeys(_effect(rule, each) for rule in chosen for each in rule.actions)
                ),
                "paper": " (the published scheme evaluates the whole view)" if paper else "",
            }
        )
    return found


def _effect(rule: Rule, action: Action) -> str:
    match rule.effect:
        case Effect.REMATERIALIZE:
            return "the whole view is evaluated, as the user chose"
        case Effect.DELETE:
            return f"rows leave {_HOW[action.certainty]}"
        case Effect.INSERT:
            return "rows enter by the changed rows"
        case Effect.RECOUNT:
            return f"rows come and go {_HOW[action.certainty]}"
