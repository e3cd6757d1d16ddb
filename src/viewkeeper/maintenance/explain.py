"""A plan as people read it."""

from __future__ import annotations

import textwrap

from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.algebra.nodes import tree_text
from viewkeeper.facts.declared import Declarations
from viewkeeper.facts.sentences import facts_in_sentences
from viewkeeper.maintenance.plan import MaintenancePlan
from viewkeeper.maintenance.view_definition import ViewDefinition


def explain_query(view: ViewDefinition, declared: Declarations) -> list[str]:
    """How the query is read, and what is known of it if the declared constraints hold; nothing if it is recomputed."""
    query = view.algebra
    if isinstance(query, OutsideAlgebra):
        return []
    facts = [f"  {fact}" for fact in [*facts_in_sentences(query, declared), *view.ties_broken]]
    return ["the query:", textwrap.indent(tree_text(query), "  "), *facts, ""]


def explain_plan(plan: MaintenancePlan, when: str) -> list[str]:
    """The lines of one plan: the strategy with its reason, then every step with its SQL."""
    lines = [f"{when}: {plan.strategy.value}", f"  because {plan.reason}"]
    lines += [f"  {fact}" for fact in plan.facts]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(f"  step {number}: {step.title}")
        lines += [f"    reads {read}" for read in step.reads]
        lines.append(textwrap.indent(step.sql.strip(), "      "))
    return lines
