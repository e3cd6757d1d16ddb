"""Invariants that no other test looks at by itself, each by its number in docs/invariants.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse, errors
from viewkeeper.execution import analysis, epochs
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.execution.run_plan import PlanRun
from viewkeeper.maintenance.plan import MaintenancePlan

pytestmark = pytest.mark.spark

SHOP = """
CREATE TABLE sale (id INT, shop INT, price INT);
INSERT INTO sale VALUES (1, 1, 5), (2, 1, 5), (3, 2, NULL);
CREATE MATERIALIZED VIEW low AS SELECT shop, price FROM sale;
CREATE MATERIALIZED VIEW high AS SELECT shop, count(*) AS n, sum(price) AS total FROM low GROUP BY shop
"""


class Dies(BaseException):
    """Stands for a SIGKILL."""


@pytest.fixture
def shop(warehouse: Warehouse) -> Warehouse:
    warehouse.run_script(SHOP)
    return warehouse


def listening(shop: Warehouse, spark: Any, moment: Moment, act: Callable[[], None]) -> Warehouse:
    """Another process at the same warehouse, in which something happens at the first such moment."""
    done: list[Moment] = []

    def listener(event: Event) -> None:
        if event.moment is moment and not done:
            done.append(moment)
            act()

    return Warehouse(Path(shop.path), spark, on_progress=listener)


def dies() -> None:
    raise Dies


def test_a_repeated_epoch_reads_what_the_first_try_pinned(
    shop: Warehouse, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I8, I10, I11: the table has changed since; the repeated epoch shows the rows of its claim, the next one the newest."""
    monkeypatch.setattr(epochs, "_leave_to_others", lambda *given: None)
    shop.sql("INSERT INTO sale VALUES (4, 2, 1)")
    with pytest.raises(Dies):
        listening(shop, spark, Moment.VIEW_COMMITTED, dies).refresh()
    (claim,) = shop._workspace.state.read().claims
    shop.sql("INSERT INTO sale VALUES (5, 3, 1)")
    shop.refresh()
    (repeated, newest) = shop.history("high")[-2:]
    assert repeated.epoch == claim.epoch and dict(repeated.sources) == dict(claim.pins)
    assert newest.epoch == claim.epoch + 1 and dict(newest.sources) != dict(claim.pins)
    at_claim = shop.sql(f"SELECT shop, n FROM high AS OF EPOCH {claim.epoch}").collect()
    assert sorted(map(tuple, at_claim)) == [(1, 2), (2, 2)]
    assert wrong_views(shop) == {}


def test_who_was_taken_for_dead_publishes_nothing(
    shop: Warehouse, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I12, I13, I14: while one process has stored a change set, another one takes over, finishes and goes on. The first
    writes its rows again, and they count once."""

    def taken_over() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(epochs, "is_alive", lambda claim: False)
            shop.sql("INSERT INTO sale VALUES (9, 9, 9)")
            shop.refresh()

    shop.sql("INSERT INTO sale VALUES (4, 2, 1), (4, 2, 1)")
    with pytest.raises(errors.TakenOverError, match="nothing is lost"):
        listening(shop, spark, Moment.CHANGE_SET_STORED, taken_over).refresh()
    published = shop._workspace.state.read().published
    assert wrong_views(shop) == {}
    assert not shop.unfinished().rows
    shop.sql("DELETE FROM sale WHERE id = 4")
    shop.refresh()
    assert wrong_views(shop) == {}
    assert all(
        shop._workspace.state.read().published[each].epoch > published[each].epoch for each in published
    )


def test_a_refresh_writes_no_table_of_the_user(shop: Warehouse) -> None:
    """I17: whatever the strategy."""
    workspace = shop._workspace
    for statement in ("UPDATE sale SET price = 7 WHERE id = 1", "DELETE FROM sale"):
        shop.sql(statement)
        (table,) = workspace.state.read().tables.values()
        version = workspace.log.version(workspace.data_address(table))
        shop.refresh()
        shop.sql("REFRESH ALL FULL")
        assert workspace.log.version(workspace.data_address(table)) == version


def test_explain_prints_the_plan_that_runs(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """I18, I20: rows came and went, which is the change that EXPLAIN supposes."""
    ran: dict[str, MaintenancePlan] = {}
    run = PlanRun.run

    def recorded(self: PlanRun, plan: MaintenancePlan) -> None:
        ran[plan.view.name] = plan
        run(self, plan)

    explained = {
        name: shop.sql(f"EXPLAIN MATERIALIZED VIEW {name}").to_json()["refresh"] for name in ("low", "high")
    }
    shop.run_script("INSERT INTO sale VALUES (7, 1, 1); DELETE FROM sale WHERE id = 1")
    monkeypatch.setattr(PlanRun, "run", recorded)
    reports = {each.name: each for each in shop.refresh().views}
    for name, shown in explained.items():
        assert [each["sql"] for each in shown["steps"]] == [each.sql for each in ran[name].steps]
        assert reports[name].strategy == shown["strategy"] and reports[name].reason


def test_a_query_that_we_read_otherwise_than_spark_is_run_as_written(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I21, I24: our reading is made to lose a column, to have another type, and to be no SQL at all. The view is recomputed from
    the user's text, and says why."""
    readings = ("SELECT 1 AS shop", "SELECT 'a' AS shop, 1 AS price", "SELECT nothing FROM nowhere")
    for at, ours in enumerate(readings):
        with monkeypatch.context() as patch:
            patch.setattr(analysis, "as_read", lambda query, ours=ours: ours)
            shop.sql(f"CREATE MATERIALIZED VIEW odd{at} AS SELECT shop, price FROM sale")
    shop.sql("INSERT INTO sale VALUES (7, 1, 1)")
    reports = {each.name: each for each in shop.refresh().views}
    for at in range(len(readings)):
        assert reports[f"odd{at}"].strategy == "recompute" and "Viewkeeper" in reports[f"odd{at}"].reason
    assert wrong_views(shop) == {}
