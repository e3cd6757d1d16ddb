"""How much a plan reads, before anybody knows how large tables are."""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.maintenance.plan import CheckConstraint, MaintenancePlan, Read

WHOLE = 3
"""Reading a table or view whole is taken for as much as reading this many parts that some values point to."""


def reading(plan: MaintenancePlan) -> int:
    """How much a plan reads of tables and of the view, roughly; change sets do not count. A table is read once for
    all steps, the view by each step anew."""
    reads = {(read.relation, at if read.name == plan.view else 0): read for at, read in _numbered_reads(plan)}
    return sum(WHOLE if read.limit is None else 1 for read in reads.values() if not read.state.is_change)


def checks_whole_tables(plan: MaintenancePlan) -> bool:
    """Whether a plan must look at all rows of a table to know that a constraint holds."""
    return any(
        isinstance(step, CheckConstraint) and not any(read.state.is_change for read in step.reads)
        for step in plan.steps
    )


def tables_read(plan: MaintenancePlan) -> list[str]:
    """The tables, and the view itself, of which a plan reads more than the changes."""
    reads = [read for _, read in _numbered_reads(plan) if not read.state.is_change]
    return list(dict.fromkeys(str(read.name) for read in reads))


def saved_tables(rules: MaintenancePlan, differential: MaintenancePlan) -> list[str]:
    """The tables that a plan by rules reads less of."""
    known = {read.relation for _, read in _numbered_reads(rules)}
    saved = [read for _, read in _numbered_reads(differential) if read.relation not in known]
    return list(
        dict.fromkeys(
            str(read.name) for read in saved if not read.state.is_change and read.name != rules.view
        )
    )


def _numbered_reads(plan: MaintenancePlan) -> Iterator[tuple[int, Read]]:
    return ((at, read) for at, step in enumerate(plan.steps, start=1) for read in step.reads)
