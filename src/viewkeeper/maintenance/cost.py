"""What a refresh will take, roughly: the rule by which AUTO chooses between applying changes and recomputing.

Seconds are rows read divided by a rate, plus something for every changed row and every job. The figures were measured on
two cores and count as proportions only: what a view's last refreshes took against what was predicted corrects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    CheckConstraint,
    Derive,
    LoadRows,
    MaintenancePlan,
    Read,
    WriteChangeSet,
)

ROWS_A_SECOND = 2_000_000
CHANGES_A_SECOND = 100_000
SEARCHED_ROWS_A_SECOND = 12_000_000
JOB_SECONDS = 0.05
ROWS_BY_VALUE = 20
"""How many rows of a table are taken to have one of the values that a limit lets through."""
LEAD = 1.0
"""Recomputing must promise to save this many seconds, and a tenth: predictions are rough, and nobody likes surprises."""
MOST_CORRECTION = 3.0


KEPT_SECONDS = 0.3
"""What a refresh takes for one more view to be refreshed: its change set and its commit."""
USUAL_CHANGES = 1_000
"""How many rows are taken to change between two refreshes, before anybody knows."""


@dataclass(frozen=True)
class Sizes:
    """The rows of every table and view that a plan reads (the view itself too), and the changes of those that changed."""

    rows: Mapping[str, int]
    changed: Mapping[str, int]


def predicted_seconds(plan: MaintenancePlan, sizes: Sizes) -> float:
    """What running a plan will take, before correction."""
    reads = {read.relation: read for step in plan.steps for read in step.reads}
    jobs = 0
    for step in plan.steps:
        match step:
            case Derive():
                jobs += step.is_shared
            case CheckConstraint() | LoadRows() | WriteChangeSet() | ApplyChangeSet():
                jobs += 1
    searched = {read.object_id for read in reads.values() if read.limit is not None}
    searching = sum(sizes.rows.get(object_id, 0) for object_id in searched) / SEARCHED_ROWS_A_SECOND
    return round(jobs * JOB_SECONDS + searching + sum(_seconds(read, sizes) for read in reads.values()), 3)


def _seconds(read: Read, sizes: Sizes) -> float:
    if read.state.is_change:
        return sizes.changed.get(read.object_id, 0) / CHANGES_A_SECOND
    rows = sizes.rows.get(read.object_id, 0)
    if read.limit is not None:
        rows = min(rows, sum(sizes.changed.values()) * ROWS_BY_VALUE)
    return rows / ROWS_A_SECOND


def corrected(predicted: float, past: tuple[float, float] | None) -> float:
    """A prediction in the light of the last refresh of the same kind: what was predicted for it, and what it took.

    >>> corrected(2.0, (1.0, 1.5)), corrected(2.0, None), corrected(2.0, (0.1, 60.0))
    (3.0, 2.0, 6.0)
    """
    if past is None or past[0] <= 0:
        return predicted
    return predicted * min(MOST_CORRECTION, max(1 / MOST_CORRECTION, past[1] / past[0]))


def why_recompute(incremental: float, recompute: float, changed: int) -> str | None:
    """The reason for recomputing where it is predicted to be clearly cheaper.

    >>> why_recompute(9.0, 2.0, 500_000)
    'that is predicted to take 2.0 s, applying 500,000 changed rows 9.0 s'
    >>> why_recompute(1.2, 0.3, 1) is None
    True
    """
    if incremental <= recompute * 1.1 + LEAD:
        return None
    return (
        f"that is predicted to take {recompute:.1f} s, applying {changed:,} changed rows {incremental:.1f} s"
    )


def why_not_keep(rows: int, groups: int) -> str | None:
    """Why groups inside a query need not be kept as a hidden view: evaluating those that changed from their rows, before and
    after the change, costs no more than one more view to refresh.

    >>> why_not_keep(6_000_000, 5) is None
    True
    >>> why_not_keep(60_000, 15_000)
    '60,000 rows in 15,000 groups are read again in 0.0 s, one more view takes 0.3 s'
    """
    if _seconds_again(rows, groups) > _seconds_kept(groups):
        return None
    return (
        f"{_sizes(rows, groups)} are read again in {_seconds_again(rows, groups):.1f} s, {_one_more(groups)}"
    )


def why_keep(rows: int, groups: int) -> str:
    """
    >>> why_keep(6_000_000, 5)
    '6,000,000 rows in 5 groups would be read again in 6.5 s, one more view takes 0.3 s'
    """
    return f"{_sizes(rows, groups)} would be read again in {_seconds_again(rows, groups):.1f} s, {_one_more(groups)}"


def _sizes(rows: int, groups: int) -> str:
    return f"{rows:,} rows in {groups:,} group{'' if groups == 1 else 's'}"


def _one_more(groups: int) -> str:
    return f"one more view takes {_seconds_kept(groups):.1f} s"


def _seconds_again(rows: int, groups: int) -> float:
    """The rows are searched once for both states; what is found of each is read."""
    found = min(rows, USUAL_CHANGES * rows / max(1, groups))
    return rows / SEARCHED_ROWS_A_SECOND + 2 * found / ROWS_A_SECOND


def _seconds_kept(groups: int) -> float:
    return KEPT_SECONDS + groups / SEARCHED_ROWS_A_SECOND
