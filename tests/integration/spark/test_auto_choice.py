"""AUTO on Spark: it recomputes where that is cheaper, says so, and learns from what refreshes took."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse
from viewkeeper.execution.choice import CHOOSE_BY
from viewkeeper.execution.reports import ViewReport

pytestmark = pytest.mark.spark

SALES = """
CREATE TABLE sale AS
SELECT id, id % 1000 AS shop, id AS price FROM (SELECT explode(sequence(1, {rows})) AS id) AS numbers
"""
TAKINGS = "CREATE MATERIALIZED VIEW {name} REFRESH {policy} AS SELECT shop, sum(price) AS total FROM sale GROUP BY shop"


def refreshed(warehouse: Warehouse, change: str) -> dict[str, ViewReport]:
    warehouse.sql(change)
    reports = {each.name: each for each in warehouse.refresh().views}
    assert wrong_views(warehouse) == {}
    return reports


def test_a_change_of_a_whole_table_is_recomputed_and_a_small_one_applied(warehouse: Warehouse) -> None:
    warehouse.sql(SALES.format(rows=100_000))
    warehouse.sql(TAKINGS.format(name="takings", policy="AUTO"))
    warehouse.sql(TAKINGS.format(name="never_whole", policy="INCREMENTAL"))
    small = refreshed(warehouse, "UPDATE sale SET price = 7 WHERE id = 5")
    assert {each.strategy for each in small.values()} == {"differential"}
    large = refreshed(warehouse, "UPDATE sale SET price = price + 1")
    assert large["never_whole"].strategy == "differential"
    assert large["takings"].strategy == "recompute"
    assert re.fullmatch(
        r"sale changed; that is predicted to take \d+\.\d s, applying about (1[6-9]|2[0-9])0,000 changed rows \d+\.\d s",
        large["takings"].reason,
    )
    small = refreshed(warehouse, "DELETE FROM sale WHERE id = 5")
    assert {each.strategy for each in small.values()} == {"differential"}


def test_what_was_predicted_is_kept_beside_what_it_took(warehouse: Warehouse) -> None:
    warehouse.sql(SALES.format(rows=10))
    warehouse.sql(TAKINGS.format(name="takings", policy="AUTO"))
    refreshed(warehouse, "INSERT INTO sale VALUES (11, 1, 1)")
    warehouse.sql("REFRESH MATERIALIZED VIEW takings FULL")
    catalogue = warehouse._workspace.state.read()
    assert [
        (each.strategy, (each.predicted or 0) > 0, each.seconds > 0) for each in catalogue.recent_history
    ] == [("recompute", True, True), ("differential", True, True), ("recompute", True, True)]
    (published,) = catalogue.published.values()
    assert set(published.corrections) == {"recompute", "differential"}
    assert all(1 / 3 <= each <= 3 for each in published.corrections.values())


def test_what_refreshes_took_moves_the_choice(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A way that was slow is not taken, and its correction is half forgotten; by sizes alone it is taken again at once."""
    warehouse.sql(SALES.format(rows=10))
    warehouse.sql(TAKINGS.format(name="takings", policy="AUTO"))
    state = warehouse._workspace.state
    ((view_id, published),) = state.read().published.items()
    slow = replace(published, corrections={"recompute": 1 / 3, "differential": 30.0})
    state.change(lambda catalogue: catalogue.with_publication(view_id, slow))
    monkeypatch.delenv(CHOOSE_BY)
    by_past = refreshed(warehouse, "UPDATE sale SET price = 7 WHERE id = 1")["takings"]
    assert by_past.strategy == "recompute" and "is predicted to take" in by_past.reason
    assert state.read().published[view_id].corrections["differential"] == pytest.approx(30.0**0.5, abs=1e-3)
    monkeypatch.setenv(CHOOSE_BY, "sizes")
    by_sizes = refreshed(warehouse, "UPDATE sale SET price = 7 WHERE id = 2")["takings"]
    assert by_sizes.strategy == "differential"
