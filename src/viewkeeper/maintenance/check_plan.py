"""What must hold of every plan, whoever made it: `viewkeeper fuzz` and the tests ask it of each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    CheckConstraint,
    Derive,
    LoadRows,
    MaintenancePlan,
    Read,
    Step,
    WriteChangeSet,
)

_TABLE = re.compile(r"(?:(?<!DISTINCT )FROM|JOIN|USING|INTO)\s+`((?:[^`]|``)+)`(?!\.)")
"""Generated SQL quotes every relation."""

_AFTER_COMMA = re.compile(r",\s*`((?:[^`]|``)+)`(?!\.)")
"""In the user's own words a relation may follow a comma; so may a column."""


def check_plan(plan: MaintenancePlan) -> list[str]:
    """What is wrong with a plan, in sentences."""
    return list(_problems(plan))


def _problems(plan: MaintenancePlan) -> Iterator[str]:
    yield from _order(plan.steps)
    reads: dict[str, Read] = {}
    derived: dict[str, Derive] = {}
    used: set[str] = set()
    for step in plan.steps:
        named = _tables(step)
        for read in step.reads:
            yield from _pointers(read, reads, derived)
            if reads.setdefault(read.relation, read) != read or read.relation in derived:
                yield f"{read.relation} stands for two things"
            used.update(_points_to(read))
        pointing = {read.limit.relation for read in step.reads if read.limit is not None}
        for read in step.reads:
            if read.relation not in named | pointing | _names(_AFTER_COMMA, step):
                yield f"“{step.title}” reads {read.relation} and does not use it"
        for name in sorted(named - reads.keys() - derived.keys()):
            yield f"“{step.title}” uses {name}, which nothing before it gives"
        used |= named
        if isinstance(step, Derive):
            if step.relation in reads or step.relation in derived:
                yield f"{step.relation} stands for two things"
            derived[step.relation] = step
    for name in derived.keys() - used:
        yield f"nothing uses {name}"


def _order(steps: tuple[Step, ...]) -> Iterator[str]:
    kinds = [type(step) for step in steps if not isinstance(step, (Derive, CheckConstraint))]
    if kinds not in ([], [LoadRows], [WriteChangeSet, ApplyChangeSet]):
        yield f"its last steps are {', '.join(kind.__name__ for kind in kinds)}"
    elif kinds and list(map(type, steps[-len(kinds) :])) != kinds:
        yield "steps follow after the last"
    elif not kinds and any(isinstance(step, Derive) for step in steps):
        yield "nothing is stored"


def _points_to(read: Read) -> list[str]:
    """The relations that say which rows of a read matter."""
    limiting = [] if read.limit is None else [read.limit.relation]
    return limiting if read.only_if is None else [*limiting, read.only_if]


def _pointers(read: Read, reads: dict[str, Read], derived: dict[str, Derive]) -> Iterator[str]:
    """What says which rows of a read matter must be at hand by then."""
    for name in _points_to(read):
        known, step = reads.get(name), derived.get(name)
        is_few = known is not None and (known.state.is_change or known.limit is not None)
        if not is_few and not (step is not None and step.is_shared):
            yield f"{name}, which limits {read.relation}, is not computed before it"


def _tables(step: Step) -> set[str]:
    """The relations that a step's SQL names, but for those that a MERGE joins."""
    own = {step.target, step.changes} if isinstance(step, ApplyChangeSet) else set()
    return _names(_TABLE, step) - own


def _names(pattern: re.Pattern[str], step: Step) -> set[str]:
    return {name.replace("``", "`") for name in pattern.findall(step.sql)}
