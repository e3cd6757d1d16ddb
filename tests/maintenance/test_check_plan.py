"""What `check_plan` finds wrong with plans: a good one, broken in every way there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.maintenance.check_plan import check_plan
from viewkeeper.maintenance.plan import (
    ApplyChangeSet,
    Derive,
    Limit,
    MaintenancePlan,
    Read,
    State,
    Step,
    Strategy,
    WriteChangeSet,
)
from viewkeeper.sql.names import QualifiedName

V, T = QualifiedName("main", "v"), QualifiedName("main", "t")
ADDED = Read("t_added", "t", T, State.ADDED)
ALIKE = Read("v_alike", "v", V, State.OLD, Limit(("a",), "v_delta", ("a",)))
DELTA = Derive("find the changes", "v_delta", "SELECT `a` FROM `t_added`", (ADDED,), is_shared=True)
TOUCHED = Derive("find them", "v_touched", "SELECT `a` FROM `v_alike` JOIN `v_delta`", (ALIKE,))
STORE = WriteChangeSet("SELECT `a` FROM `v_touched` WHERE `a` IS DISTINCT FROM `b`", ())
APPLY = ApplyChangeSet("MERGE INTO `v` USING `v_changes`", "v", "v_changes", "SELECT 1")
GOOD: tuple[Step, ...] = (DELTA, TOUCHED, STORE, APPLY)

BROKEN: dict[str, tuple[tuple[Step, ...], str]] = {
    "nothing stored": ((DELTA, TOUCHED), "nothing is stored"),
    "no apply": ((DELTA, TOUCHED, STORE), "its last steps are WriteChangeSet"),
    "out of order": ((DELTA, STORE, TOUCHED, APPLY), "steps follow after the last"),
    "unknown relation": (
        (DELTA, replace(TOUCHED, sql="SELECT `a` FROM `v_alike` JOIN `u`"), STORE, APPLY),
        "“find them” uses u, which nothing before it gives",
    ),
    "needless read": (
        (replace(DELTA, sql="SELECT 1 AS `a`"), TOUCHED, STORE, APPLY),
        "“find the changes” reads t_added and does not use it",
    ),
    "needless step": (
        (DELTA, TOUCHED, Derive("more", "v_more", "SELECT 1"), STORE, APPLY),
        "nothing uses v_more",
    ),
    "a limit too late": (
        (replace(DELTA, is_shared=False), TOUCHED, STORE, APPLY),
        "v_delta, which limits v_alike, is not computed before it",
    ),
    "two reads of one name": (
        (DELTA, TOUCHED, replace(STORE, reads=(replace(ALIKE, limit=None),)), APPLY),
        "v_alike stands for two things",
    ),
    "two steps of one name": (
        (DELTA, DELTA, TOUCHED, STORE, APPLY),
        "v_delta stands for two things",
    ),
}


def plan(steps: tuple[Step, ...]) -> MaintenancePlan:
    return MaintenancePlan(V, Strategy.DIFFERENTIAL, "t changed", steps)


def test_a_good_plan_has_no_problems() -> None:
    """I7: the last two steps store the change set and then apply it; see what is broken above."""
    assert check_plan(plan(GOOD)) == []


def test_a_plan_without_steps_has_no_problems() -> None:
    assert check_plan(plan(())) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plan(name: str) -> None:
    steps, problem = BROKEN[name]
    assert problem in check_plan(plan(steps))
