"""A plan as people read it."""

from __future__ import annotations

import textwrap

from viewkeeper.maintenance.plan import MaintenancePlan


def explain_plan(plan: MaintenancePlan, when: str) -> list[str]:
    """The lines of one plan: the strategy with its reason, then every step with its SQL."""
    lines = [f"{when}: {plan.strategy.value}", f"  because {plan.reason}"]
    lines += [f"  {fact}" for fact in plan.facts]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(f"  step {number}: {step.title}")
        lines += [f"    reads {read}" for read in step.reads]
        lines.append(textwrap.indent(step.sql.strip(), "      "))
    return lines
