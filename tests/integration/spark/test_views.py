"""Scenarios on real Spark and Delta: views created, refreshed, read and verified."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.execution.queries import DifferentVersionsWarning

pytestmark = pytest.mark.spark

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture
def shop(warehouse: Warehouse) -> Warehouse:
    warehouse.run_script("""
        CREATE TABLE item (id INT PRIMARY KEY, name STRING);
        CREATE TABLE line (id INT PRIMARY KEY, item INT REFERENCES item, price DECIMAL(10,2));
        INSERT INTO item VALUES (1, 'ball'), (2, 'doll'), (3, NULL);
        INSERT INTO line VALUES (1, 1, 2.50), (2, 1, 2.50), (3, 2, 1), (4, NULL, NULL);
        CREATE MATERIALIZED VIEW sold AS
          SELECT item.name, line.price FROM line LEFT JOIN item ON line.item = item.id;
        CREATE MATERIALIZED VIEW totals AS
          SELECT name, sum(price) AS total, count(*) AS n FROM sold GROUP BY name
    """)
    return warehouse


def _assert_right(warehouse: Warehouse) -> None:
    for name in warehouse.view_names():
        report = warehouse.verify(name)
        assert report.equal, report


def test_duplicates_and_nulls_are_kept_as_a_bag(shop: Warehouse, rows: Rows) -> None:
    from decimal import Decimal

    assert rows(shop.sql("SELECT * FROM sold")) == sorted(
        [("ball", Decimal("2.50")), ("ball", Decimal("2.50")), ("doll", Decimal("1.00")), (None, None)],
        key=repr,
    )
    _assert_right(shop)


def test_a_refresh_brings_a_chain_of_views_up_to_date_and_writes_only_the_difference(
    shop: Warehouse, rows: Rows
) -> None:
    shop.run_script("""
        DELETE FROM line WHERE id = 2;
        INSERT INTO line VALUES (5, 2, 1), (6, 3, 7);
        UPDATE item SET name = 'big ball' WHERE id = 1
    """)
    report = shop.refresh()
    by_name = {view.name: view for view in report.views}
    assert (by_name["sold"].inserted, by_name["sold"].deleted) == (3, 2)
    assert by_name["sold"].strategy == "differential"
    assert "line" in by_name["sold"].reason and "item" in by_name["sold"].reason
    _assert_right(shop)
    assert len(rows(shop.sql("SELECT * FROM sold"))) == 5


def test_a_refresh_with_unchanged_sources_does_nothing_and_says_so(shop: Warehouse, spark: Any) -> None:
    """I19: no epoch, no write, no job."""
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("no-op", "no-op")
    before = shop._workspace.state.read()
    report = shop.refresh()
    assert [view.strategy for view in report.views] == ["none", "none"]
    assert {view.reason for view in report.views} == {"nothing it reads has changed"}
    assert shop._workspace.state.read() == before
    assert list(tracker.getJobIdsForGroup("no-op")) == []


def test_an_optimize_of_a_table_is_no_change(shop: Warehouse, spark: Any) -> None:
    record = next(t for t in shop._workspace.state.read().tables.values() if t.name.name == "line")
    spark.sql(f"OPTIMIZE delta.`{shop._workspace.data_address(record)}`").collect()
    shop.sql("INSERT INTO line VALUES (9, 1, 1)")
    shop.refresh()
    spark.sql(f"OPTIMIZE delta.`{shop._workspace.data_address(record)}`").collect()
    assert {view.strategy for view in shop.refresh().views} == {"none"}


def test_refreshing_one_view_includes_the_views_it_reads(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW other AS SELECT id FROM line")
    shop.sql("INSERT INTO line VALUES (7, 1, 3)")
    report = shop.refresh("totals")
    assert [view.name for view in report.views] == ["sold", "totals"]
    _assert_right(shop)
    assert shop.sql("SELECT count(*) AS n FROM other").collect()[0]["n"] == 4


def test_a_query_over_views_of_different_versions_warns(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW other AS SELECT id FROM line")
    shop.sql("INSERT INTO line VALUES (7, 1, 3)")
    shop.refresh("totals")
    with pytest.warns(
        DifferentVersionsWarning, match=r"other and totals were refreshed from different versions of line"
    ):
        shop.sql("SELECT * FROM other, totals")
    shop.refresh()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shop.sql("SELECT * FROM other, totals")


def test_past_epochs_stay_readable_until_they_are_vacuumed(shop: Warehouse) -> None:
    """I4: as many epochs as VACUUM retains."""
    from viewkeeper.errors import VersionGoneError

    def total_rows(clause: str) -> int:
        return int(shop.sql(f"SELECT count(*) AS n FROM sold {clause}").collect()[0]["n"])

    first = shop.history("sold")[-1].epoch
    for number in range(3):
        shop.sql(f"INSERT INTO line VALUES ({100 + number}, 1, 1)")
        shop.refresh()
    assert [total_rows(f"AS OF EPOCH {epoch}") for epoch in range(first + 1, first + 5)] == [4, 5, 6, 7]
    report = shop.sql("VACUUM WAREHOUSE RETAIN 2 EPOCHS")
    assert "no longer kept" in report.message
    assert total_rows(f"AS OF EPOCH {first + 3}") == 6
    assert total_rows("") == 7
    with pytest.raises(VersionGoneError, match="no longer kept"):
        shop.sql(f"SELECT * FROM sold AS OF EPOCH {first + 1}")
    _assert_right(shop)


def test_a_failing_view_and_its_dependants_keep_their_epoch_while_the_rest_is_published(
    shop: Warehouse, rows: Rows
) -> None:
    """I15"""
    from viewkeeper import RefreshFailedError

    shop.run_script("""
        CREATE MATERIALIZED VIEW ratio AS SELECT id, 1 / price AS r FROM line;
        CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM ratio
    """)
    before = rows(shop.sql("SELECT * FROM ratio"))
    shop.sql("INSERT INTO line VALUES (10, 1, 0)")
    with pytest.raises(RefreshFailedError, match="ratio could not be refreshed") as caught:
        shop.refresh()
    failed = {view.name for view in caught.value.report.views if view.error}
    assert failed == {"ratio", "above"}
    assert rows(shop.sql("SELECT * FROM ratio")) == before
    assert shop.sql("SELECT count(*) AS n FROM sold").collect()[0]["n"] == 5
    assert [entry.outcome for entry in shop.history("ratio")] == ["published", "failed"]
    shop.sql("UPDATE line SET price = 4 WHERE id = 10")
    shop.refresh()
    _assert_right(shop)


def test_replacing_a_view_keeps_the_old_one_until_the_new_one_is_published(
    shop: Warehouse, rows: Rows
) -> None:
    from viewkeeper.errors import InUseError, InvalidStatementError

    with pytest.raises(InUseError, match="totals reads sold and would not work any more"):
        shop.sql("CREATE OR REPLACE MATERIALIZED VIEW sold AS SELECT name FROM item")
    with pytest.raises(InvalidStatementError, match="would read itself through totals"):
        shop.sql("CREATE OR REPLACE MATERIALIZED VIEW sold AS SELECT name, total AS price FROM totals")
    shop.sql("ALTER MATERIALIZED VIEW sold AS SELECT name, CAST(1 AS DECIMAL(10,2)) AS price FROM item")
    assert len(rows(shop.sql("SELECT * FROM sold"))) == 3
    shop.refresh()
    _assert_right(shop)
    assert sorted(row["n"] for row in shop.sql("SELECT n FROM totals").collect()) == [1, 1, 1]


def test_renamed_objects_keep_working(shop: Warehouse) -> None:
    """I22"""
    shop.run_script("""
        ALTER TABLE line RENAME TO sales.positions;
        ALTER MATERIALIZED VIEW sold RENAME TO sales.sold;
        INSERT INTO sales.positions VALUES (20, 1, 5)
    """)
    report = shop.refresh()
    assert [view.name for view in report.views] == ["sales.sold", "totals"]
    _assert_right(shop)
    assert shop.sql("SELECT count(*) AS n FROM sales.sold").collect()[0]["n"] == 5


def test_register_shows_everything_to_plain_spark_sql(shop: Warehouse, spark: Any) -> None:
    """I5: but for hidden columns."""
    shop.sql("CREATE TABLE other.t (a INT)")
    session = spark.newSession()
    names = shop.register(session)
    assert names["sold"] == "sold" and names["other.t"] == "other.t"
    assert session.sql("SELECT count(*) AS n FROM sold").collect()[0]["n"] == 4
    assert session.sql("SELECT count(*) AS n FROM `other.t`").collect()[0]["n"] == 0
    assert "_vk_copy" not in session.table("sold").columns
