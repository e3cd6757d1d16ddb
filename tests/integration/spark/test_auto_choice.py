"""AUTO on Spark: it recomputes where that is cheaper, says so, and learns from what refreshes took."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse
from viewkeeper.execution.reports import ViewReport
from viewkeeper.storage.records import HistoryEntry

pytestmark = pytest.mark.spark

TABLE = """
CREATE TABLE sale AS
SELECT id, id % 1000 AS shop, id AS price FROM (SELECT explode(sequence(1, 100000)) AS id) AS numbers
"""


def refreshed(warehouse: Warehouse, change: str) -> ViewReport:
    warehouse.sql(change)
    (report,) = warehouse.refresh().views
    assert wrong_views(warehouse) == {}
    return report


def history(warehouse: Warehouse) -> list[HistoryEntry]:
    return list(warehouse._workspace.state.read().recent_history)


def test_a_change_of_a_whole_table_is_recomputed_and_a_small_one_applied(warehouse: Warehouse) -> None:
    warehouse.sql(TABLE)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW takings AS SELECT shop, sum(price) AS total FROM sale GROUP BY shop"
    )
    assert refreshed(warehouse, "UPDATE sale SET price = 7 WHERE id = 5").strategy == "differential"
    whole = refreshed(warehouse, "UPDATE sale SET price = price + 1")
    assert whole.strategy == "recompute"
    assert re.fullmatch(
        r"sale changed; that is predicted to take \d+\.\d s, applying about (1[6-9]|2[0-9])0,000 changed rows \d+\.\d s",
        whole.reason,
    )
    assert refreshed(warehouse, "DELETE FROM sale WHERE id = 5").strategy == "differential"


def test_a_view_that_must_not_be_recomputed_is_not(warehouse: Warehouse) -> None:
    warehouse.sql(TABLE)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW takings REFRESH INCREMENTAL AS SELECT shop, sum(price) AS total FROM sale GROUP BY shop"
    )
    assert refreshed(warehouse, "UPDATE sale SET price = price + 1").strategy == "differential"


def test_what_was_predicted_is_kept_beside_what_it_took(warehouse: Warehouse) -> None:
    warehouse.run_script(
        "CREATE TABLE t (k INT); INSERT INTO t VALUES (1); CREATE MATERIALIZED VIEW v AS SELECT k FROM t"
    )
    refreshed(warehouse, "INSERT INTO t VALUES (2)")
    warehouse.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert [(each.strategy, (each.predicted or 0) > 0, each.seconds > 0) for each in history(warehouse)] == [
        ("recompute", True, True),
        ("differential", True, True),
        ("recompute", True, True),
    ]
    (published,) = warehouse._workspace.state.read().published.values()
    assert set(published.corrections) == {"recompute", "differential"}
    assert all(1 / 3 <= each <= 3 for each in published.corrections.values())


def test_a_way_that_was_once_slow_is_tried_again(warehouse: Warehouse) -> None:
    """Were its correction never forgotten, a single slow refresh would be the last by changes."""
    warehouse.sql(TABLE)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW takings AS SELECT shop, sum(price) AS total FROM sale GROUP BY shop"
    )
    state = warehouse._workspace.state
    ((view_id, published),) = state.read().published.items()
    slow = {"recompute": 1 / 3, "differential": 30.0}
    state.change(lambda catalogue: catalogue.with_publication(view_id, replace(published, corrections=slow)))
    strategies = [
        refreshed(warehouse, f"UPDATE sale SET price = price + 1 WHERE id = {row}").strategy
        for row in range(1, 5)
    ]
    assert strategies[0] == "recompute" and strategies[-1] == "differential"
