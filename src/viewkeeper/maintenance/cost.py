"""What a refresh will take, roughly: the rule by which AUTO chooses between applying changes and recomputing.

Seconds are rows divided by a rate, plus something for every refresh and every step. The figures were measured on two
cores and count as proportions only: what a view's refreshes took against what was predicted corrects them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from viewkeeper.maintenance.plan import Derive, MaintenancePlan, Read, Strategy

REFRESH_SECONDS = 0.35
"""What a refresh takes however little there is to do."""
STEP_SECONDS = 0.02
ROWS_A_SECOND = 2_000_000
"""That Spark reads whole, compares and writes."""
CHANGES_A_SECOND = 100_000
SEARCHED_ROWS_A_SECOND = 20_000_000
SEARCHED_FOR_A_VALUE = 50_000
"""How many rows are searched for one value: statistics of files and row groups spare the others."""
FOUND_ROWS_A_SECOND = 3_000_000
ROWS_BY_VALUE = 6
"""How many rows of a table are taken to have one of the values that a limit lets through, if they are not those of a key."""
MOST_FOUND_ROWS = 400_000
"""If more rows than these are wanted, Spark reads the table whole (`MOST_DRIVER_ROWS` of the execution)."""
LEAD = 0.2
"""Recomputing must promise to save this many seconds, and a tenth: predictions are rough, and nobody likes surprises."""
MOST_CORRECTION = 3.0


KEPT_SECONDS = 0.3
"""What a refresh takes for one more view to be refreshed: its change set and its commit."""
USUAL_CHANGES = 1_000
"""How many rows are taken to change between two refreshes, before anybody knows."""


@dataclass(frozen=True)
class Sizes:
    """The rows of every table and view that a plan reads (the view itself too), and the changes of those that changed,
    both images of an update counted. `keys` are columns of which at most one row has the same values."""

    rows: Mapping[str, int]
    changed: Mapping[str, int]
    keys: Mapping[str, Collection[frozenset[str]]] = field(default_factory=dict)


def predicted_seconds(plan: MaintenancePlan, sizes: Sizes) -> float:
    """What running a plan will take, before correction."""
    reads = {read.relation: read for step in plan.steps for read in step.reads}
    steps = sum(not isinstance(step, Derive) or step.is_shared for step in plan.steps)
    changes = sum(sizes.changed.get(read.object_id, 0) for read in reads.values() if read.state.is_change)
    searched: dict[str, float] = {}
    whole, found = 0.0, 0.0
    for read in reads.values():
        rows = sizes.rows.get(read.object_id, 0)
        if read.state.is_change or read.only_if is not None:  # such a read rarely happens
            continue
        values = _values(read, reads, sizes)
        wanted = rows if values is None else values * _rows_by_value(read, sizes)
        if values is None or wanted > MOST_FOUND_ROWS:
            whole += rows
        else:
            found += min(rows, wanted)
            least = min(float(rows), values * SEARCHED_FOR_A_VALUE)
            searched[read.object_id] = max(least, searched.get(read.object_id, 0))
    seconds = REFRESH_SECONDS + steps * STEP_SECONDS + changes / CHANGES_A_SECOND + whole / ROWS_A_SECOND
    return round(seconds + found / FOUND_ROWS_A_SECOND + sum(searched.values()) / SEARCHED_ROWS_A_SECOND, 3)


def _values(read: Read, reads: Mapping[str, Read], sizes: Sizes) -> float | None:
    """How many values a limit lets through; None without one. Old and new images mostly have the same."""
    if read.limit is None:
        return None
    by = reads.get(read.limit.relation)
    if by is not None and by.state.is_change:
        return sizes.changed.get(by.object_id, 0) / 2
    through = None if by is None else _values(by, reads, sizes)
    return sum(sizes.changed.values()) / 2 if through is None else through


def _rows_by_value(read: Read, sizes: Sizes) -> int:
    assert read.limit is not None
    limited = {name.lower() for name in read.limit.columns}
    return 1 if any(key <= limited for key in sizes.keys.get(read.object_id, ())) else ROWS_BY_VALUE


def learnt(
    corrections: Mapping[str, float], strategy: str, predicted: float | None, took: float
) -> dict[str, float]:
    """By how much to correct the next predictions for a view, after one more refresh of it.

    What the refresh took moves the correction for its strategy half of the way: one slow run is no rule. Ways to apply
    changes that were passed over are forgotten as fast, else one slow run might be the last.

    >>> learnt({}, "differential", 1.0, 4.0)
    {'differential': 1.732}
    >>> learnt({"recompute": 1.0, "differential": 2.25}, "recompute", 1.0, 1.21)
    {'recompute': 1.1, 'differential': 1.5}
    """
    if not predicted:
        return dict(corrections)
    found = {**corrections, strategy: _halfway(corrections.get(strategy, 1.0), _correction(predicted, took))}
    if strategy != Strategy.RECOMPUTE.value:
        return found
    return {each: factor if each == strategy else _halfway(factor, 1.0) for each, factor in found.items()}


def learnt_from_load(predicted: float, took: float) -> dict[str, float]:
    """What the first load of a view tells about recomputing it.

    >>> learnt_from_load(4.0, 6.0)
    {'recompute': 1.5}
    """
    return {Strategy.RECOMPUTE.value: _correction(predicted, took)}


def _correction(predicted: float, took: float) -> float:
    return min(MOST_CORRECTION, max(1 / MOST_CORRECTION, took / predicted))


def _halfway(one: float, other: float) -> float:
    return round(math.sqrt(one * other), 3)


def why_recompute(incremental: float, recompute: float, changed: str) -> str | None:
    """The reason for recomputing where it is predicted to be clearly cheaper.

    >>> why_recompute(9.0, 2.0, "about 500,000")
    'that is predicted to take 2.0 s, applying about 500,000 changed rows 9.0 s'
    >>> why_recompute(0.5, 0.4, "1") is None
    True
    """
    if incremental <= recompute * 1.1 + LEAD:
        return None
    return f"that is predicted to take {recompute:.1f} s, applying {changed} changed rows {incremental:.1f} s"


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
    '6,000,000 rows in 5 groups would be read again in 6.3 s, one more view takes 0.3 s'
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
