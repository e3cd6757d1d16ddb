"""Histories that went wrong once, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.histories.history import History
from tests.histories.steps import Step
from viewkeeper import Warehouse

pytestmark = pytest.mark.spark


def test_a_view_that_lags_behind_gets_what_vacuum_would_have_removed(
    warehouse: Warehouse, spark: Any
) -> None:
    """I4, I8: w last consumed v three epochs ago. The change sets since then are all it has to catch up with, however few
    epochs are to be kept for readers: without them it would lack these rows for ever."""
    warehouse.run_script("""
        CREATE TABLE t (k INT, a INT);
        INSERT INTO t VALUES (0, 0);
        CREATE MATERIALIZED VIEW v AS SELECT k, a FROM t;
        CREATE MATERIALIZED VIEW w AS SELECT k, count(*) AS n FROM v GROUP BY k
    """)
    history = History(warehouse, spark, seed=0)
    for row in (1, 2, 3):
        history.step(Step(f"INSERT INTO t VALUES ({row}, {row})"))
        history.step(Step("REFRESH MATERIALIZED VIEW v"))
    history.step(Step("VACUUM WAREHOUSE RETAIN 1 EPOCHS"))
    history.step(Step("REFRESH ALL"))
    history.end()
    assert {row["k"] for row in warehouse.sql("SELECT k FROM w").collect()} == {0, 1, 2, 3}
