"""Plans as people read them and as JSON: stable texts without ids."""

from __future__ import annotations

import json

import pytest

from tests.maintenance.helpers import load_plan, refresh_plan
from tests.support.golden import check_golden
from viewkeeper.maintenance.build_plan import ONLY_RECOMPUTE, recompute_reason, unchanged_reason
from viewkeeper.maintenance.explain import explain_plan
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import RefreshPolicy

ORDERS, SALES = QualifiedName("default", "orders"), QualifiedName("sales", "my orders")


def test_explain_a_refresh(request: pytest.FixtureRequest) -> None:
    check_golden(request, "\n".join(explain_plan(refresh_plan(), "when orders changes")), ".txt")


def test_explain_a_first_load(request: pytest.FixtureRequest) -> None:
    check_golden(request, "\n".join(explain_plan(load_plan(), "when it is created")), ".txt")


def test_explain_a_view_of_hostile_names(request: pytest.FixtureRequest) -> None:
    plan = refresh_plan(
        "SELECT o.id FROM orders o\nJOIN sales.orders ON o.id = orders.id",
        QualifiedName("my sales", "it`s; --"),
        {"a b": "INT"},
        changed=(ORDERS, SALES),
    )
    check_golden(request, "\n".join(explain_plan(plan, "now")), ".txt")


def test_plan_as_json(request: pytest.FixtureRequest) -> None:
    check_golden(request, json.dumps(refresh_plan().to_json(), indent=2), ".json")


def test_the_json_of_a_plan_is_stable_and_has_no_ids() -> None:
    one, other = refresh_plan().to_json(), refresh_plan().to_json()
    assert json.dumps(one) == json.dumps(other)
    assert "id of" not in json.dumps(one)
    assert list(one) == ["view", "strategy", "reason", "steps"]
    assert [list(step) for step in one["steps"]] == [["step", "title", "reads", "sql"]] * 3


def test_explain_shows_every_step_of_the_json() -> None:
    plan = refresh_plan()
    text = "\n".join(explain_plan(plan, "now"))
    for number, step in enumerate(plan.to_json()["steps"], start=1):
        assert f"  step {number}: {step['title']}\n" in text
        for line in step["sql"].splitlines():
            assert f"      {line}\n" in text + "\n"


@pytest.mark.parametrize(
    ("policy", "changed", "reason"),
    [
        (RefreshPolicy.AUTO, (ORDERS,), f"orders changed; {ONLY_RECOMPUTE}"),
        (RefreshPolicy.AUTO, (ORDERS, SALES), f"orders, sales.`my orders` changed; {ONLY_RECOMPUTE}"),
        (RefreshPolicy.AUTO, (), ONLY_RECOMPUTE),
        (RefreshPolicy.INCREMENTAL, (ORDERS,), f"orders changed; {ONLY_RECOMPUTE}"),
        (RefreshPolicy.FULL, (ORDERS,), "orders changed; the view was created with REFRESH FULL"),
    ],
)
def test_reasons(policy: RefreshPolicy, changed: tuple[QualifiedName, ...], reason: str) -> None:
    assert refresh_plan(policy=policy, changed=changed).reason == reason


def test_the_reasons_that_reports_use() -> None:
    assert unchanged_reason() == "nothing it reads has changed"
    assert recompute_reason(RefreshPolicy.STRICT) == ONLY_RECOMPUTE
    assert load_plan().reason == "the view is new"
