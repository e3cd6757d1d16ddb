"""Plans as people read them and as JSON: stable texts without ids."""

from __future__ import annotations

import json

import pytest

from tests.maintenance.helpers import TOTALS_QUERY, definition, load_plan, refresh_plan
from tests.support.golden import check_golden
from viewkeeper.algebra.nodes import Project
from viewkeeper.facts.declared import Declared
from viewkeeper.facts.sentences import facts_in_sentences
from viewkeeper.maintenance.build_plan import unchanged_reason
from viewkeeper.maintenance.explain import explain_plan
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import RefreshPolicy


def test_explain_a_refresh(request: pytest.FixtureRequest) -> None:
    check_golden(request, "\n".join(explain_plan(refresh_plan(), "when orders changes")), ".txt")


def test_explain_a_first_load(request: pytest.FixtureRequest) -> None:
    check_golden(request, "\n".join(explain_plan(load_plan(), "when it is created")), ".txt")


def test_explain_a_view_of_hostile_names(request: pytest.FixtureRequest) -> None:
    plan = refresh_plan(
        "SELECT o.id FROM orders o\nJOIN sales.orders ON o.id = orders.id",
        QualifiedName("my sales", "it`s; --"),
        {"a b": "INT"},
    )
    check_golden(request, "\n".join(explain_plan(plan, "now")), ".txt")


def test_plan_as_json(request: pytest.FixtureRequest) -> None:
    check_golden(request, json.dumps(refresh_plan().to_json(), indent=2), ".json")


def test_the_json_of_a_plan_is_stable_and_has_no_ids() -> None:
    one, other = refresh_plan().to_json(), refresh_plan().to_json()
    assert json.dumps(one) == json.dumps(other)
    assert "id of" not in json.dumps(one)
    assert list(one) == ["view", "strategy", "reason", "facts", "steps"]
    assert [list(step) for step in one["steps"]] == [["step", "title", "reads", "sql"]] * 3


def test_explain_shows_every_step_of_the_json() -> None:
    plan = refresh_plan()
    text = "\n".join(explain_plan(plan, "now"))
    for number, step in enumerate(plan.to_json()["steps"], start=1):
        assert f"  step {number}: {step['title']}\n" in text
        for line in step["sql"].splitlines():
            assert f"      {line}\n" in text + "\n"


FULL = "orders changed; the view was created with REFRESH FULL"


@pytest.mark.parametrize(
    ("text", "policy", "reason"),
    [
        (TOTALS_QUERY, RefreshPolicy.FULL, FULL),
        (
            "SELECT customer_id, amount AS total FROM orders LIMIT 3 OFFSET 1",
            RefreshPolicy.AUTO,
            "rows behind an OFFSET, or without LIMIT, can move with any change",
        ),
        (
            "SELECT customer_id, rand() AS total FROM orders",
            RefreshPolicy.AUTO,
            "rand gives another value each time",
        ),
        (
            "SELECT 1 AS customer_id, my_function(id) AS total FROM orders",
            RefreshPolicy.STRICT,
            "my_function is no function of Spark",
        ),
        (
            "SELECT id AS customer_id, id = ANY (SELECT order_id FROM items) OR id = 1 AS total FROM orders",
            RefreshPolicy.AUTO,
            "a comparison with ANY or ALL stands under OR, NOT or CASE",
        ),
        (
            "SELECT count(*) AS customer_id, sum(amount) AS total FROM orders",
            RefreshPolicy.AUTO,
            "its one group",
        ),
    ],
)
def test_reasons_for_recomputing(text: str, policy: RefreshPolicy, reason: str) -> None:
    """I18"""
    plan = refresh_plan(text, policy=policy)
    assert plan.strategy is Strategy.RECOMPUTE
    assert reason in plan.reason


def test_the_reasons_that_reports_use() -> None:
    assert unchanged_reason() == "nothing it reads has changed"
    assert load_plan().reason == "the view is new"
    assert refresh_plan(policy=RefreshPolicy.AUTO).reason == "orders changed"


def test_explain_tells_which_tables_only_grow() -> None:
    view = definition("SELECT o.id FROM orders o JOIN orders p ON o.id = p.id", shape={"id": "INT"})
    (orders,) = view.query.inputs
    assert isinstance(view.algebra, Project)
    growing = {orders.object_id: Declared(is_append_only=True)}
    sentence = "orders is append-only: its rows stay as they are"
    assert facts_in_sentences(view.algebra, growing).count(sentence) == 1
    assert sentence not in facts_in_sentences(view.algebra, {})
