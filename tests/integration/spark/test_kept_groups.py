"""Groups inside a query that are kept in hidden views, through every statement that concerns the view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measuring import cost_of
from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse, errors
from viewkeeper.execution.reports import RefreshFailedError
from viewkeeper.maintenance import cost
from viewkeeper.storage.records import ViewRecord

pytestmark = pytest.mark.spark

Rows = Callable[[Any], list[tuple[Any, ...]]]

TABLES = """
CREATE TABLE region (id INT PRIMARY KEY, name STRING);
CREATE TABLE sale (id INT PRIMARY KEY, region INT, x DECIMAL(10,2), big BIGINT);
INSERT INTO region VALUES (1, 'north'), (2, 'south'), (3, 'empty');
INSERT INTO sale VALUES (1, 1, 2.50, 1), (2, 1, NULL, 2), (3, 2, 4.00, 3), (4, NULL, 1.00, 4)
"""
BY_REGION = "(SELECT region, sum(x) AS total, count(*) AS n FROM sale GROUP BY region)"
TOTALS = f"SELECT r.name, s.total, s.n FROM region r JOIN {BY_REGION} s ON s.region = r.id"


@pytest.fixture
def keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hidden view pays, however small its groups are."""
    monkeypatch.setattr(cost, "KEPT_SECONDS", -1.0)


@pytest.fixture
def shop(warehouse: Warehouse, keeps: None) -> Warehouse:
    warehouse.run_script(TABLES)
    warehouse.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    return warehouse


def hidden_views(warehouse: Warehouse) -> list[ViewRecord]:
    return [view for view in warehouse._workspace.state.read().views.values() if view.owner is not None]


def assert_nothing_kept(warehouse: Warehouse) -> None:
    assert hidden_views(warehouse) == []
    assert not list(Path(warehouse.path).glob("views/*/groups_*")), "a folder of what was tried is left"


def test_a_few_huge_groups_are_not_read_again(warehouse: Warehouse, spark: Any, keeps: None) -> None:
    count = 200_000
    warehouse.run_script(f"""
        CREATE TABLE region (id INT, name STRING);
        CREATE TABLE sale (id INT, region INT, x DECIMAL(10,2));
        INSERT INTO region SELECT CAST(id AS INT), concat('region ', id) FROM range(5);
        INSERT INTO sale SELECT CAST(id AS INT), CAST(id % 5 AS INT), 1 FROM range({count})
    """)
    (created,) = warehouse.sql(f"CREATE MATERIALIZED VIEW totals REFRESH STRICT AS {TOTALS}").views
    assert "are kept in a hidden view: 200,000 rows in 5 groups" in created.reason
    assert [(each.name, each.inserted) for each in created.kept] == [("_vk_totals_groups_1", 5)]
    warehouse.sql("INSERT INTO sale SELECT CAST(-id AS INT), 1, 1 FROM range(1, 11)")
    report, found = cost_of(spark, lambda: warehouse.refresh())
    (view,) = report.views
    assert (view.strategy, view.inserted, view.deleted) == ("differential", 1, 1)
    assert [(each.strategy, each.inserted, each.deleted) for each in view.kept] == [("differential", 1, 1)]
    assert found.rows_read < count / 10
    assert warehouse.verify("totals").equal
    plan = warehouse.sql("EXPLAIN MATERIALIZED VIEW totals").plan
    reads = [
        (read["object"], read["state"])
        for each in (*plan["kept"], plan)
        for step in each["refresh"]["steps"]
        for read in step["reads"]
    ]
    assert {state for name, state in reads if name == "sale"} == {"removed", "added"}
    assert {name for name, _ in reads} == {"sale", "region", "_vk_totals_groups_1", "totals"}


def test_users_see_only_their_view(shop: Warehouse, rows: Rows) -> None:
    (hidden,) = hidden_views(shop)
    assert str(hidden.name) == "_vk_totals_groups_1"
    assert shop.view_names() == ["totals"]
    assert [row[0] for row in shop.views().rows] == ["totals"]
    assert shop.views().rows[0][-1] == "region, sale"
    assert [row[-1] for row in shop.tables().rows] == ["totals", "totals"]
    assert "_vk_totals_groups_1" not in shop.names()
    with pytest.raises(errors.UnknownNameError):
        shop.sql("SELECT * FROM _vk_totals_groups_1")
    with pytest.raises(errors.UnknownNameError):
        shop.sql("DROP MATERIALIZED VIEW _vk_totals_groups_1")
    assert set(shop.register()) == {"region", "sale", "totals"}
    assert {entry.view for entry in shop.history(last=5)} == {"totals"}
    shown = str(shop.sql("DESCRIBE totals"))
    assert "KEEPS _vk_totals_groups_1: 3 rows" in shown
    assert "The groups of sale by" in shown
    explained = str(shop.sql("EXPLAIN MATERIALIZED VIEW totals"))
    assert "hidden view _vk_totals_groups_1, 3 rows:" in explained
    assert "when sale changes: differential" in explained
    assert "when region or _vk_totals_groups_1 changes: differential" in explained
    planned = str(shop.sql(f"EXPLAIN CREATE MATERIALIZED VIEW other AS {TOTALS}"))
    assert "are kept in a hidden view if their types allow it" in planned
    with pytest.raises(errors.InUseError, match="totals"):
        shop.sql("DROP TABLE sale")
    assert rows(shop.sql("SELECT * FROM totals")) == [
        ("north", Decimal("2.50"), 2),
        ("south", Decimal("4.00"), 1),
    ]


def test_every_statement_of_its_life(shop: Warehouse, rows: Rows) -> None:
    shop.run_script("INSERT INTO sale VALUES (5, 3, 7, 0); DELETE FROM sale WHERE id = 3")
    report = shop.refresh("totals")
    (view,) = report.views
    assert (view.name, view.strategy) == ("totals", "differential")
    assert [each.strategy for each in view.kept] == ["differential"]
    assert wrong_views(shop) == {}
    assert [entry.epoch for entry in shop.history("totals")] == [report.epoch - 1, report.epoch]
    old = rows(shop.sql(f"SELECT name FROM totals AS OF EPOCH {report.epoch - 1}"))
    assert old == [("north",), ("south",)]

    assert {view.strategy for view in shop.refresh().views} == {"none"}
    (full,) = shop.sql("REFRESH MATERIALIZED VIEW totals FULL").views
    assert [full.strategy, *(each.strategy for each in full.kept)] == ["recompute", "recompute"]

    shop.sql("ALTER MATERIALIZED VIEW totals SET REFRESH STRICT")
    assert {view.policy.value for view in hidden_views(shop)} == {"STRICT"}
    shop.sql("ALTER MATERIALIZED VIEW totals RENAME TO sums")
    assert [str(view.name) for view in hidden_views(shop)] == ["_vk_sums_groups_1"]
    shop.sql("UPDATE sale SET x = x + 1")
    shop.refresh()
    assert wrong_views(shop) == {}
    assert shop.verify("sums").equal

    shop.sql("VACUUM WAREHOUSE RETAIN 1 EPOCHS")
    assert wrong_views(shop) == {}
    before = {view.id for view in hidden_views(shop)}
    shop.sql(f"ALTER MATERIALIZED VIEW sums AS {TOTALS} WHERE s.n > 1")
    assert len(hidden_views(shop)) == 1 and not before & {view.id for view in hidden_views(shop)}
    shop.sql("INSERT INTO sale VALUES (6, 3, 1, 0)")
    assert [view.strategy for view in shop.refresh().views] == ["differential"]
    assert wrong_views(shop) == {}
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT name FROM region")
    assert hidden_views(shop) == []
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW sums AS {TOTALS}")
    shop.sql("DROP MATERIALIZED VIEW sums")
    catalogue = shop._workspace.state.read()
    assert not catalogue.views and not catalogue.published
    shop.sql("VACUUM WAREHOUSE RETAIN 1 EPOCHS")
    assert not list(Path(shop.path).glob("views/*"))


def test_verify_asks_the_tables_and_not_the_hidden_view(shop: Warehouse, spark: Any) -> None:
    """I32: A hidden view whose rows were wrong would be the truth for nobody."""
    workspace = shop._workspace
    (hidden,) = hidden_views(shop)
    address = workspace.data_address(hidden)
    spark.sql(f"UPDATE delta.`{address}` SET count_1 = 100").collect()
    version = workspace.log.version(address)
    (view,) = workspace.state.read().users_views()

    def publish_the_wrong_rows(catalogue: Any) -> Any:
        own, kept = catalogue.published[view.id], catalogue.published[hidden.id]
        catalogue = catalogue.with_publication(hidden.id, replace(kept, version=version))
        return catalogue.with_publication(view.id, replace(own, inputs={**own.inputs, hidden.id: version}))

    workspace.state.change(publish_the_wrong_rows)
    assert shop.verify("totals").equal
    shop.sql("INSERT INTO sale VALUES (9, 1, 1, 1)")
    with pytest.raises(RefreshFailedError, match="not what its change set was made for"):
        shop.refresh()
    assert shop.verify("totals").equal
    shop.sql("REFRESH MATERIALIZED VIEW totals FULL")
    assert wrong_views(shop) == {}


def test_what_somebody_else_did_to_a_hidden_view_is_put_back(shop: Warehouse, spark: Any) -> None:
    (hidden,) = hidden_views(shop)
    spark.sql(f"DELETE FROM delta.`{shop._workspace.data_address(hidden)}`").collect()
    assert "changed by somebody else" in str(shop.views())
    shop.sql("INSERT INTO sale VALUES (9, 1, 1, 1)")
    with pytest.raises(RefreshFailedError, match="somebody else") as caught:
        shop.refresh()
    (view,) = caught.value.report.views
    assert view.name == "totals" and view.error is not None and "somebody else" in view.error
    shop.sql("RESTORE MATERIALIZED VIEW totals")
    (view,) = shop.refresh().views
    assert [(each.strategy, each.reason) for each in view.kept] == [("differential", "sale changed")]
    assert view.strategy == "recompute" and "was put back to an earlier epoch" in view.reason
    assert wrong_views(shop) == {}


def test_a_failing_hidden_view_fails_its_owner_alone(shop: Warehouse) -> None:
    shop.run_script("""
        CREATE MATERIALIZED VIEW wide AS
          SELECT r.name, s.total FROM region r
          JOIN (SELECT region, sum(big) AS total FROM sale GROUP BY region) s ON s.region = r.id;
        INSERT INTO sale VALUES (7, 1, 1, 9223372036854775807)
    """)
    with pytest.raises(RefreshFailedError, match="wide could not be refreshed") as caught:
        shop.refresh()
    by_name = {view.name: view for view in caught.value.report.views}
    assert set(by_name) == {"totals", "wide"}
    assert by_name["totals"].error is None and by_name["totals"].strategy == "differential"
    assert by_name["wide"].error is not None and [each.error for each in by_name["wide"].kept] == [
        by_name["wide"].error
    ]
    shop.sql("UPDATE sale SET big = 5 WHERE id = 7")
    assert {view.strategy for view in shop.refresh().views} <= {"differential", "none"}
    assert wrong_views(shop) == {}


NESTED = {
    "best": f"""WITH t AS {BY_REGION}
      SELECT r.name, t.total FROM region r JOIN t ON t.region = r.id
      WHERE t.total = (SELECT max(total) FROM t)""",
    "often": "SELECT n, count(*) AS regions FROM (SELECT region, count(*) AS n FROM sale GROUP BY region) c GROUP BY n",
    "above": "SELECT id, x FROM sale WHERE x > (SELECT avg(x) FROM sale)",
    "many": "SELECT region, sum(x) AS total FROM sale GROUP BY region HAVING count(*) > 1",
    "each_one": "SELECT r.name, (SELECT sum(s.x) FROM sale s WHERE s.region = r.id) AS total FROM region r",
    "positive": "SELECT p.region, count(*) AS n FROM plus p JOIN "
    "(SELECT region, sum(x) AS total FROM plus GROUP BY region) t ON t.region = p.region WHERE t.total > 3 GROUP BY p.region",
}
"""Each has groups inside that are kept once, also where they are read twice."""


def test_groups_in_every_place_are_kept_right(warehouse: Warehouse, keeps: None) -> None:
    warehouse.run_script(TABLES)
    warehouse.sql("CREATE MATERIALIZED VIEW plus AS SELECT region, x FROM sale WHERE x > 0")
    for name, text in NESTED.items():
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH INCREMENTAL AS {text}")
    catalogue = warehouse._workspace.state.read()
    kept = {str(view.name): len(catalogue.kept_by(view.id)) for view in catalogue.users_views()}
    assert kept == {**dict.fromkeys(NESTED, 1), "plus": 0}
    assert wrong_views(warehouse) == {}
    for change in (
        "INSERT INTO sale VALUES (5, 3, 9.99, 1), (6, 2, 4.00, 1); UPDATE region SET id = id + 1",
        "UPDATE sale SET region = 1, x = x - 2 WHERE id > 2",
        "DELETE FROM sale",
        "INSERT INTO sale VALUES (8, NULL, NULL, NULL), (9, 2, 1.5, 1), (10, 2, 2.5, 1)",
    ):
        warehouse.run_script(change)
        assert "recompute" not in {view.strategy for view in warehouse.refresh().views}
        assert wrong_views(warehouse) == {}, change
    assert warehouse.verify("best").equal


def test_a_replaced_view_below_a_hidden_one(warehouse: Warehouse, keeps: None) -> None:
    warehouse.run_script(TABLES)
    warehouse.sql("CREATE MATERIALIZED VIEW plus AS SELECT region, x FROM sale WHERE x > 0")
    warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {TOTALS.replace('FROM sale', 'FROM plus')}")
    warehouse.sql("CREATE OR REPLACE MATERIALIZED VIEW plus AS SELECT region, x FROM sale WHERE x > 3")
    with pytest.raises(errors.InvalidStatementError, match="plus, which was replaced"):
        warehouse.verify("v")
    warehouse.refresh("v")
    assert wrong_views(warehouse) == {}
    assert warehouse.verify("v").equal
    warehouse.sql("DROP MATERIALIZED VIEW v")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW pairs AS "
        "SELECT r.name FROM region r JOIN (SELECT DISTINCT * FROM plus) d ON d.region = r.id"
    )
    with pytest.raises(errors.InUseError, match="pairs reads plus and would not work any more"):
        warehouse.sql("CREATE OR REPLACE MATERIALIZED VIEW plus AS SELECT region FROM sale")


def test_small_groups_are_evaluated_again(warehouse: Warehouse) -> None:
    warehouse.run_script(TABLES)
    (view,) = warehouse.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}").views
    assert view.kept == ()
    assert "are not kept: 4 rows in 1 group are read again in 0.0 s" in view.reason
    assert_nothing_kept(warehouse)


@pytest.mark.parametrize("clause", ["REFRESH FULL", "REMATERIALIZE ON DELETE FROM sale"])
def test_what_is_recomputed_at_the_users_wish_keeps_nothing(
    warehouse: Warehouse, keeps: None, clause: str
) -> None:
    warehouse.run_script(TABLES)
    warehouse.sql(f"CREATE MATERIALIZED VIEW totals {clause} AS {TOTALS}")
    assert_nothing_kept(warehouse)


def test_sums_of_floats_are_kept_whatever_that_costs(warehouse: Warehouse) -> None:
    """Computed again they may come out with other bits, and the old rows of the view would not be found by them."""
    warehouse.run_script(TABLES)
    text = TOTALS.replace("sum(x)", "sum(CAST(x AS DOUBLE))")
    (view,) = warehouse.sql(f"CREATE MATERIALIZED VIEW totals REFRESH INCREMENTAL AS {text}").views
    assert "are kept in a hidden view" in view.reason
    assert "AS DOUBLE)) depends on the order in which Spark adds" in view.reason
    assert len(hidden_views(warehouse)) == 1
    warehouse.sql("INSERT INTO sale VALUES (5, 1, 0.10, 1), (6, 1, 0.20, 1), (7, 2, 0.30, 1)")
    assert [each.strategy for each in warehouse.refresh().views] == ["differential"]
    assert warehouse.verify("totals").equal
