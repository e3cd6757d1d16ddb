"""A plan that fails is not the end: the view is recomputed in the same refresh, and the report says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from viewkeeper import RefreshFailedError, Warehouse
from viewkeeper.execution import apply, run_plan
from viewkeeper.execution.refresh_view import PlanFailedWarning
from viewkeeper.maintenance.plan import Derive, WriteChangeSet

pytestmark = pytest.mark.spark

SCHEMA = """
CREATE TABLE t (k INT, v INT);
INSERT INTO t VALUES (1, 10), (1, 20), (2, 5), (NULL, 3);
"""


@pytest.fixture
def shop(warehouse: Warehouse) -> Warehouse:
    warehouse.run_script(SCHEMA)
    return warehouse


def break_steps(monkeypatch: pytest.MonkeyPatch, kind: type, sql: str) -> None:
    """Every step of this kind, but for those of recomputing, runs other SQL than it was made with."""
    run_step = run_plan.PlanRun._run_step

    def broken(self: Any, session: Any, step: Any, registered: list[str]) -> None:
        if isinstance(step, kind) and not self.replaces_change_set:
            step = replace(step, sql=sql)
        run_step(self, session, step, registered)

    monkeypatch.setattr(run_plan.PlanRun, "_run_step", broken)


def test_a_plan_that_spark_refuses(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """I33: the view is recomputed; views above it read its exact changes all the same."""
    shop.run_script("""
        CREATE MATERIALIZED VIEW sums REFRESH INCREMENTAL AS SELECT k, sum(v) AS s FROM t GROUP BY k;
        CREATE MATERIALIZED VIEW above REFRESH INCREMENTAL AS SELECT s FROM sums WHERE s > 4;
        INSERT INTO t VALUES (2, 100)
    """)
    break_steps(monkeypatch, Derive, "SELECT there_is_no_such_column FROM nowhere")
    with pytest.warns(PlanFailedWarning, match="sums was recomputed, for its incremental plan failed"):
        report = shop.refresh("sums")
    monkeypatch.undo()
    (view,) = report.views
    assert view.strategy == "recompute"
    assert view.reason.startswith("t changed; the incremental plan failed: a table is not there")
    assert view.fallback is not None and view.fallback.startswith("a table is not there")
    assert (view.inserted, view.deleted) == (1, 1)
    assert shop.verify("sums").equal
    assert [each.strategy for each in shop.refresh().views if each.name == "above"] == ["differential"]
    assert shop.verify("above").equal


@pytest.mark.parametrize("most_written_whole", [5_000, 0], ids=["overwrite", "own commit"])
def test_a_change_set_that_does_not_fit(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch, most_written_whole: int
) -> None:
    """What a plan deletes must be in the view. The change set that does not fit is replaced, for views above read it."""
    monkeypatch.setattr(apply, "OVERWRITE_ROWS", most_written_whole)
    shop.run_script("""
        CREATE MATERIALIZED VIEW sums REFRESH INCREMENTAL AS SELECT k, sum(v) AS s FROM t GROUP BY k;
        CREATE MATERIALIZED VIEW above REFRESH INCREMENTAL AS SELECT s FROM sums WHERE s > 4;
        INSERT INTO t VALUES (2, 100)
    """)
    with monkeypatch.context() as broken:
        odd = "SELECT 2 AS k, 77L AS s, 1L AS _vk_rows, 1L AS _vk_count_1, 1 AS _vk_copy, 'delete' AS _vk_change"
        break_steps(broken, WriteChangeSet, odd)
        with pytest.warns(PlanFailedWarning, match="0 of 1 rows fit"):
            report = shop.refresh()
    assert [(view.name, view.strategy) for view in report.views] == [
        ("sums", "recompute"),
        ("above", "differential"),
    ]
    assert shop.verify("sums").equal and shop.verify("above").equal
    changes = shop.sql(f"SELECT s, _change_type FROM CHANGES(sums, {report.epoch}) ORDER BY s").collect()
    assert [tuple(row) for row in changes] == [(5, "delete"), (105, "insert")]


def test_merge_counts_what_it_finds(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view whose names need column mapping is written by Spark's MERGE, which passes over rows that are not there."""
    shop.run_script("""
        CREATE MATERIALIZED VIEW sums REFRESH INCREMENTAL AS SELECT k AS `the k`, sum(v) AS s FROM t GROUP BY k;
        INSERT INTO t VALUES (2, 100)
    """)
    with monkeypatch.context() as broken:
        odd = "SELECT 2 AS `the k`, 77L AS s, 1L AS _vk_rows, 1L AS _vk_count_1, 1 AS _vk_copy, 'delete' AS _vk_change"
        break_steps(broken, WriteChangeSet, odd)
        with pytest.warns(PlanFailedWarning, match="0 of 1 rows fit"):
            shop.refresh()
    assert shop.verify("sums").equal
    shop.sql("INSERT INTO t VALUES (2, 1)")
    assert [view.strategy for view in shop.refresh().views] == ["differential"]
    assert shop.verify("sums").equal


def test_an_exception_that_is_not_ours_is_one_views_outcome(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch, rows: Callable[[Any], list[tuple[Any, ...]]]
) -> None:
    """It used to leave a claim that every later refresh, and even DROP, repeated and failed at."""
    shop.run_script("""
        CREATE MATERIALIZED VIEW bad AS SELECT k, v FROM t;
        CREATE MATERIALIZED VIEW good AS SELECT v FROM t;
        INSERT INTO t VALUES (7, 7)
    """)
    run = run_plan.PlanRun.run

    def fails(self: run_plan.PlanRun, plan: Any) -> None:
        if self.view.name.name == "bad":
            raise OverflowError("date value out of range")
        run(self, plan)

    monkeypatch.setattr(run_plan.PlanRun, "run", fails)
    with pytest.raises(
        RefreshFailedError, match="bad could not be refreshed: unexpected OverflowError"
    ) as caught:
        shop.refresh()
    assert [view.error is None for view in caught.value.report.views] == [False, True]
    assert shop.verify("good").equal
    monkeypatch.undo()
    shop.refresh()
    assert shop.verify("bad").equal


def test_strict_refuses_what_would_be_recomputed(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run_script("""
        CREATE MATERIALIZED VIEW sums REFRESH STRICT AS SELECT k, sum(v) AS s FROM t GROUP BY k;
        INSERT INTO t VALUES (2, 100)
    """)
    with monkeypatch.context() as broken:
        break_steps(broken, Derive, "SELECT there_is_no_such_column FROM nowhere")
        with pytest.raises(
            RefreshFailedError, match="would have to be recomputed: the incremental plan failed"
        ):
            shop.refresh()
    shop.refresh()
    assert shop.verify("sums").equal


def test_what_the_query_itself_raises_is_told(shop: Warehouse) -> None:
    """A plan that fails where the query fails too is no mistake of ours; once the data is mended the view goes on."""
    shop.run_script("""
        CREATE MATERIALIZED VIEW ratios REFRESH INCREMENTAL AS SELECT k, 100 / v AS r FROM t;
        INSERT INTO t VALUES (3, 0)
    """)
    with pytest.raises(RefreshFailedError, match="Division by zero"):
        shop.refresh()
    shop.sql("DELETE FROM t WHERE v = 0")
    shop.refresh()
    assert shop.verify("ratios").equal
