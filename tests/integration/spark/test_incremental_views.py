"""Incremental views end to end on Spark: strategies, reasons, change sets, and what outside readers see."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support import spark_oracle
from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse, errors
from viewkeeper.execution import apply, refresh_view
from viewkeeper.execution.reports import RefreshFailedError
from viewkeeper.execution.run_plan import PlanRun

pytestmark = pytest.mark.spark

SHOP = """
CREATE TABLE customer (id INT PRIMARY KEY, name STRING, city STRING);
CREATE TABLE sale (id INT PRIMARY KEY, customer_id INT, price DECIMAL(10,2), weight DOUBLE);
INSERT INTO customer VALUES (1, 'Ann', 'Rome'), (2, 'Bob', NULL), (3, 'Cy', 'Oslo');
INSERT INTO sale VALUES (1, 1, 2.50, 0.5), (2, 1, NULL, 1e17), (3, 2, 4.00, 1.0), (4, NULL, 1.00, 1.0);
CREATE MATERIALIZED VIEW sold AS
  SELECT c.name, c.city, s.price FROM customer c JOIN sale s ON c.id = s.customer_id WHERE s.price IS NULL OR s.price > 1;
CREATE MATERIALIZED VIEW totals AS
  SELECT city, count(*) AS n, sum(price) AS total, avg(price) AS mean FROM sold GROUP BY city;
CREATE MATERIALIZED VIEW weights AS SELECT customer_id, sum(weight) AS kilos, max(weight) AS most FROM sale GROUP BY customer_id;
CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS n, sum(price) AS total FROM sale;
CREATE MATERIALIZED VIEW cities AS SELECT DISTINCT city FROM customer
"""
VIEWS = ("cities", "sold", "totals", "weights", "whole")
CHANGES = (
    "INSERT INTO sale VALUES (5, 3, 9.99, 2.0), (6, 2, 4.00, NULL)",
    "UPDATE customer SET city = 'Rome' WHERE id IN (2, 3)",
    "DELETE FROM sale WHERE id = 2",
    "UPDATE sale SET customer_id = 3, price = price + 1 WHERE id = 3; DELETE FROM customer WHERE id = 1",
    "UPDATE sale SET id = 40 WHERE id = 4; INSERT INTO customer VALUES (4, 'Di', NULL)",
    "DELETE FROM sale",
    "INSERT INTO sale VALUES (7, 4, 1.01, -0.0)",
)


def test_every_change_reaches_every_view_incrementally(warehouse: Warehouse) -> None:
    warehouse.run_script(SHOP)
    strategies: dict[str, set[str]] = {name: set() for name in VIEWS}
    for change in CHANGES:
        warehouse.run_script(change)
        for view in warehouse.refresh().views:
            strategies[view.name].add(view.strategy)
        assert wrong_views(warehouse) == {}
    assert all(found <= {"differential", "none"} for found in strategies.values()), strategies
    for name in VIEWS:
        assert "differential" in strategies[name]
        assert warehouse.verify(name).equal


TURNED = """
CREATE TABLE sale (id INT PRIMARY KEY, item STRING, qty INT, q1 INT, q2 INT);
INSERT INTO sale VALUES (1, 'a', 5, 1, 2), (2, 'a', 3, 2, 2), (3, NULL, 4, 1, NULL), (4, 'b', NULL, NULL, 3);
CREATE MATERIALIZED VIEW pivoted REFRESH STRICT AS
  SELECT * FROM (SELECT item, q1, qty FROM sale) PIVOT (count(qty) AS n, sum(qty) AS s FOR q1 IN (1 AS one, 2));
CREATE MATERIALIZED VIEW unpivoted REFRESH STRICT AS SELECT * FROM sale UNPIVOT (v FOR quarter IN (q1 AS `Q1`, q2));
CREATE MATERIALIZED VIEW kept REFRESH STRICT AS
  SELECT id, item FROM sale UNPIVOT INCLUDE NULLS (v FOR quarter IN (q1 AS `Q1`, q2)) WHERE quarter = 'Q1';
CREATE MATERIALIZED VIEW newest REFRESH STRICT AS
  SELECT id, item FROM sale QUALIFY row_number() OVER w = 1 WINDOW w AS (PARTITION BY item ORDER BY id DESC);
CREATE MATERIALIZED VIEW often REFRESH STRICT AS SELECT item, count(*) AS n FROM sale s GROUP BY item
  HAVING count(*) > (SELECT count(*) FROM sale t WHERE t.item = s.item AND t.qty > 3);
CREATE MATERIALIZED VIEW measured REFRESH STRICT AS SELECT item, count_if(qty > 3) AS large, stddev(qty) AS spread,
  var_pop(qty) AS variance, covar_samp(qty, q1) AS together, every(q1 > 0) AS counted FROM sale GROUP BY item;
CREATE MATERIALIZED VIEW rolled REFRESH STRICT AS SELECT item, q1, count(*) AS n FROM sale GROUP BY ROLLUP (item, q1)
"""


def test_turned_rows_and_groups_above_groups_follow_sparks_own_meaning(
    warehouse: Warehouse, spark: Any, rows: Any
) -> None:
    """What DuckDB answers otherwise, or does not take, is compared with Spark itself, over no rows at all too."""
    warehouse.run_script(TURNED)
    for change in (
        "UPDATE sale SET qty = 7 WHERE id = 1; UPDATE sale SET q1 = 2 WHERE id IN (3, 4); DELETE FROM sale WHERE id = 2",
        "INSERT INTO sale VALUES (5, 'c', 1, 1, 1), (6, 'c', 5, NULL, NULL), (7, 'a', 2, 3, 3)",
        "DELETE FROM sale",
        "INSERT INTO sale VALUES (8, NULL, NULL, 1, NULL)",
    ):
        warehouse.run_script(change)
        report = warehouse.refresh()
        assert {view.strategy for view in report.views} == {"differential"}
        assert spark_oracle.wrong_views(warehouse, spark) == {}
    assert rows(warehouse.sql("SELECT * FROM pivoted")) == [(None, 0, None, None, None)]


MEASURED = """
CREATE TABLE reading (id INT PRIMARY KEY, place STRING, level INT, tiny TINYINT, large BIGINT, price DECIMAL(10,2), fine DECIMAL(14,6));
INSERT INTO reading VALUES
  (1, 'a', 5, 1, 6, 10.50, 0.000001), (2, 'a', 3, -1, 12, 12.25, 12345678.5), (3, 'a', 8, 3, NULL, 9.00, -0.25), (4, 'b', 7, 4, 1, 1.00, 2),
  (5, 'b', 1, 2, 2, 3.50, 1), (6, 'b', 2, NULL, 4, NULL, NULL), (7, NULL, 1, 1, 1, 1, 1), (8, NULL, 2, 2, 2, 7, 3);
CREATE MATERIALIZED VIEW together REFRESH STRICT AS SELECT place, corr(level, price) AS c, corr(price, fine) AS d,
  covar_pop(level, fine) AS e, covar_samp(price, price) AS f, corr(level, price) FILTER (WHERE id < 100) AS g FROM reading GROUP BY place;
CREATE MATERIALIZED VIEW spread REFRESH STRICT AS SELECT place, stddev(price) AS s, var_pop(fine) AS v, variance(price) AS w,
  stddev_pop(CAST(tiny AS DECIMAL(8,3))) AS l FROM reading GROUP BY place HAVING stddev_pop(level) > 0.5;
CREATE MATERIALIZED VIEW bits REFRESH STRICT AS SELECT place, bit_or(level) AS o, bit_and(tiny) AS a, bit_xor(large) AS x,
  bit_or(tiny) AS t, max(level) AS m FROM reading GROUP BY place;
CREATE MATERIALIZED VIEW odd REFRESH STRICT AS SELECT bit_xor(tiny) AS x, stddev(price) AS s FROM reading
"""


def test_correlations_deviations_of_decimals_and_bits_follow_random_changes(
    warehouse: Warehouse, spark: Any
) -> None:
    """Levels and prices are distinct in each group, for Spark's CORR fails where a column is constant."""
    warehouse.run_script(MEASURED)
    generator = random.Random(1996)
    for step in range(4):
        low = 100 * (step + 1)
        rows = [
            f"({low + at}, {generator.choice(('NULL', repr('a'), repr('b')))}, {low + at}, {generator.choice((-128, 5, 127, 'NULL'))}, "
            f"{generator.choice((1 << 62, -1, 3, 'NULL'))}, {low + at}.{generator.randint(10, 99)}, {generator.randint(-(10**13), 10**13)}e-6)"
            for at in range(5)
        ]
        warehouse.sql(f"INSERT INTO reading VALUES {', '.join(rows)}")
        if step % 2:
            kept = generator.randint(0, 3)
            warehouse.sql(f"DELETE FROM reading WHERE id > 8 AND id % 4 = {kept}")
            warehouse.sql(
                f"UPDATE reading SET level = level + 1000, tiny = {step}, price = price + 0.01 WHERE id % 3 = 0"
            )
        report = warehouse.refresh()
        assert {view.strategy for view in report.views} == {"differential"}
        assert spark_oracle.wrong_views(warehouse, spark) == {}
    warehouse.sql("DELETE FROM reading")
    warehouse.refresh()
    assert spark_oracle.wrong_views(warehouse, spark) == {}


def test_a_correlation_with_a_constant_fails_as_in_spark(warehouse: Warehouse, rows: Any) -> None:
    warehouse.run_script(
        "CREATE TABLE t (id INT PRIMARY KEY, x INT, y INT); INSERT INTO t VALUES (1, 1, 1), (2, 2, 3);"
        "CREATE MATERIALIZED VIEW c AS SELECT corr(x, y) AS c FROM t"
    )
    warehouse.sql("UPDATE t SET x = 1")
    with pytest.raises(RefreshFailedError, match="Division by zero"):
        warehouse.refresh()
    warehouse.sql("DELETE FROM t WHERE id = 2")
    warehouse.refresh()
    assert rows(warehouse.sql("SELECT * FROM c")) == [(None,)]


def test_averages_are_rounded_as_spark_rounds_them_before_something_is_made_of_them(
    warehouse: Warehouse, spark: Any, rows: Any
) -> None:
    """The average of a DECIMAL has four decimals more than its values: of 1, 0 and 0 three times that is not 1."""
    warehouse.run_script(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, d DECIMAL(10,2));"
        "INSERT INTO t VALUES (1, 1, 1), (2, 1, 0), (3, 2, 1), (4, 2, 2);"
        "CREATE MATERIALIZED VIEW thrice AS SELECT k, avg(d) * 3 AS x FROM t GROUP BY k;"
        "CREATE MATERIALIZED VIEW thirds AS SELECT k, count(*) AS n FROM t GROUP BY k HAVING avg(d) <= 0.333333"
    )
    for change, expected in (
        ("INSERT INTO t VALUES (5, 1, 0)", [(1, Decimal("0.999999")), (2, Decimal("4.500000"))]),
        ("UPDATE t SET d = 0 WHERE k = 2", [(1, Decimal("0.999999")), (2, Decimal("0.000000"))]),
        ("DELETE FROM t WHERE id = 2", [(1, Decimal("1.500000")), (2, Decimal("0.000000"))]),
    ):
        warehouse.sql(change)
        report = warehouse.refresh()
        assert {view.strategy for view in report.views} == {"differential"}
        assert rows(warehouse.sql("SELECT * FROM thrice")) == expected
        assert spark_oracle.wrong_views(warehouse, spark) == {}


def test_a_refresh_says_why_it_recomputes(warehouse: Warehouse) -> None:
    warehouse.run_script(SHOP)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW ranked AS SELECT id, row_number() OVER (ORDER BY id) AS r FROM sale"
    )
    warehouse.sql("INSERT INTO sale VALUES (9, 1, 1.00, 1.0)")
    (report,) = warehouse.refresh("ranked").views
    assert (report.strategy, report.reason) == (
        "recompute",
        "sale changed; its window functions have no PARTITION BY in common: any change can reach every row",
    )
    (full,) = warehouse.sql("REFRESH MATERIALIZED VIEW weights FULL").views
    assert full.strategy == "recompute" and "REFRESH … FULL was asked for" in full.reason
    with pytest.raises(
        errors.RefreshPolicyError, match="without recomputing: its window functions have no PARTITION BY"
    ):
        warehouse.sql(
            "CREATE MATERIALIZED VIEW strict REFRESH STRICT AS SELECT row_number() OVER (ORDER BY id) AS r FROM sale"
        )
    warehouse.sql("CREATE MATERIALIZED VIEW strict REFRESH STRICT AS SELECT id FROM sale WHERE price > 2")


def test_operations_that_the_user_has_recomputed(warehouse: Warehouse) -> None:
    warehouse.run_script(
        "CREATE TABLE t (id INT PRIMARY KEY, x INT); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);"
        "CREATE MATERIALIZED VIEW v REMATERIALIZE ON DELETE FROM t AS SELECT id, x FROM t WHERE x > 1"
    )
    strategies = []
    for change in (
        "INSERT INTO t VALUES (4, 4)",
        "UPDATE t SET x = 5 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
    ):
        warehouse.sql(change)
        (report,) = warehouse.refresh().views
        strategies.append((report.strategy, report.reason))
    assert strategies == [
        ("differential", "t changed"),
        ("differential", "t changed"),
        ("recompute", "t changed; REMATERIALIZE ON DELETE of t was asked for"),
    ]
    assert wrong_views(warehouse) == {}


def test_change_sets_as_users_read_them(warehouse: Warehouse, rows: Any) -> None:
    warehouse.run_script(SHOP)
    first = warehouse.refresh().epoch
    warehouse.sql("INSERT INTO sale VALUES (5, 1, 3.00, 1.0)")
    one = warehouse.refresh().epoch
    warehouse.sql("DELETE FROM sale WHERE id = 5")
    two = warehouse.refresh().epoch
    query = "SELECT city, n, _epoch, _change_type FROM CHANGES(totals, {}, {}) AS c"
    assert rows(warehouse.sql(query.format(one, two))) == rows(
        warehouse.spark.createDataFrame(
            [
                ("Rome", 2, one, "delete"),
                ("Rome", 3, one, "insert"),
                ("Rome", 3, two, "delete"),
                ("Rome", 2, two, "insert"),
            ]
        )
    )
    assert warehouse.sql(f"SELECT * FROM CHANGES(totals, {two})").count() == 2
    assert warehouse.sql(f"SELECT * FROM CHANGES(cities, {two}, {two})").count() == 0
    with pytest.raises(errors.VersionGoneError, match="are kept from epoch"):
        warehouse.sql(f"SELECT * FROM CHANGES(totals, {first - 4}, {two})")
    with pytest.raises(errors.UnsupportedError, match="sale is a table"):
        warehouse.sql("SELECT * FROM CHANGES(sale, 1, 2)")


def test_an_outside_reader_sees_the_rows_and_hidden_columns_by_their_names(warehouse: Warehouse) -> None:
    warehouse.run_script(SHOP)
    record = next(v for v in warehouse._workspace.state.read().views.values() if v.name.name == "totals")
    table = DeltaTable(warehouse._workspace.layout.rows(record.location))
    names = [field.name for field in table.schema().fields]
    assert names[:4] == ["city", "n", "total", "mean"]
    assert all(name.startswith("_vk_") for name in names[4:])


def test_columns_that_come_and_go(warehouse: Warehouse, spark: Any) -> None:
    warehouse.run_script(SHOP)
    table = next(t for t in warehouse._workspace.state.read().tables.values() if t.name.name == "sale")
    address = warehouse._workspace.data_address(table)
    spark.sql(f"ALTER TABLE delta.`{address}` ADD COLUMN note STRING")
    spark.sql(f"INSERT INTO delta.`{address}` VALUES (50, 1, 5.00, 1.0, 'new')")
    assert {view.strategy for view in warehouse.refresh().views} <= {"differential", "none"}
    assert wrong_views(warehouse) == {}
    spark.sql(
        f"ALTER TABLE delta.`{address}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE delta.`{address}` DROP COLUMN weight")
    spark.sql(f"INSERT INTO delta.`{address}` (id, customer_id, price) VALUES (51, 1, 6.00)")
    with pytest.raises(
        RefreshFailedError, match="the column weight of sale was dropped or renamed"
    ) as caught:
        warehouse.refresh()
    failed = {view.name for view in caught.value.report.views if view.error is not None}
    assert "weights" in failed and "sold" not in failed, "views that do not read the column go on"


def test_a_lost_feed_makes_a_view_recompute_and_say_so(warehouse: Warehouse) -> None:
    warehouse.run_script(SHOP)
    table = next(t for t in warehouse._workspace.state.read().tables.values() if t.name.name == "sale")
    address = warehouse._workspace.data_address(table)
    first = DeltaTable(address).version()
    warehouse.sql("INSERT INTO sale VALUES (70, 1, 5.00, 1.0)")
    warehouse.sql("INSERT INTO sale VALUES (71, 1, 5.00, 1.0)")
    DeltaTable(address).create_checkpoint()
    for version in range(first + 2):
        Path(address, "_delta_log", f"{version:020}.json").unlink()
    (view,) = warehouse.refresh("weights").views
    assert view.strategy == "recompute" and "the log of sale no longer tells" in view.reason, view
    assert warehouse.verify("weights").equal


@pytest.mark.parametrize("folded_whole_rows", [0, 1000])
def test_small_files_of_a_large_view_are_folded_and_rewritten_files_do_no_harm(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, folded_whole_rows: int
) -> None:
    """A view that counts as large gets a file with every refresh; somebody's OPTIMIZE moves rows to other places."""
    monkeypatch.setattr(apply, "OVERWRITE_ROWS", 0)
    monkeypatch.setattr(apply, "FOLDED_WHOLE_ROWS", folded_whole_rows)
    monkeypatch.setattr(apply, "MOST_SMALL_FILES", 3)
    warehouse.run_script(SHOP.partition("CREATE MATERIALIZED VIEW weights")[0])
    catalogue = warehouse._workspace.state.read()
    (sold,) = [view for view in catalogue.views.values() if view.name.name == "sold"]
    address = warehouse._workspace.layout.rows(sold.location)
    sold_before = warehouse.sql("SELECT count(*) FROM sold").collect()[0][0]
    first_epoch = catalogue.last_epoch
    titles: list[str] = []
    for number in range(6):
        warehouse.run_script(
            f"INSERT INTO sale VALUES ({100 + number}, 1, {number + 2}, 1.0), ({200 + number}, 3, 3.00, 2.0);"
            f"UPDATE sale SET price = price + 1 WHERE id IN (1, {99 + number})"
        )
        report = warehouse.refresh()
        titles += [title for view in report.views if view.name == "sold" for title, _ in view.steps]
        assert wrong_views(warehouse) == {}
        assert len(DeltaTable(address).file_uris()) <= 4
        if number == 4:
            warehouse.spark.sql(f"OPTIMIZE delta.`{address}`").collect()
    written_whole = titles.count("apply the change set (overwrite, for it had many small files)")
    folded_by_spark = titles.count("fold 4 small files of the view into one")
    assert (written_whole, folded_by_spark > 0) == ((1, False) if folded_whole_rows else (0, True))
    assert titles.count("apply the change set (own commit)") == 6 - written_whole
    before = warehouse.sql(f"SELECT count(*) FROM sold AS OF EPOCH {first_epoch}").collect()[0][0]
    assert before == sold_before
    assert warehouse.verify("sold").equal


@pytest.mark.parametrize("key", [("id",), ("word",)])
def test_change_sets_of_signed_rows_are_counted_without_spark_whatever_is_taken_for_a_key(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...]
) -> None:
    """Rows have copies, ids are there several times, and words many times: what a key leaves open is looked up whole."""
    monkeypatch.setattr(apply, "OVERWRITE_ROWS", 0)
    monkeypatch.setattr(refresh_view, "likely_key", lambda view, catalogue: key)
    by_sql: list[Any] = []
    monkeypatch.setattr(PlanRun, "_compute_change_set", lambda run, *_: by_sql.append(run) or (0, 0))
    warehouse.run_script("""
        CREATE TABLE t (id INT, word STRING, x DOUBLE);
        INSERT INTO t SELECT id, concat('w', id % 3), id / 2 FROM range(40) r(id);
        INSERT INTO t VALUES (1, 'w1', 0.5D), (1, 'w1', 0.5D), (1, 'other', NULL), (NULL, NULL, double('NaN')), (NULL, NULL, double('NaN'));
        CREATE MATERIALIZED VIEW v AS SELECT id, word, x FROM t WHERE id IS NULL OR id <> 39;
    """)
    changes = (
        "UPDATE t SET x = x + 1 WHERE id IN (5, 6, 7); DELETE FROM t WHERE word = 'other'",
        "INSERT INTO t VALUES (1, 'w1', 0.5), (8, 'w2', 4.0); DELETE FROM t WHERE id BETWEEN 20 AND 25",
        "DELETE FROM t WHERE id IS NULL; INSERT INTO t VALUES (NULL, NULL, double('NaN'))",
        "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'new', -0.0), (39, 'w0', 1.0)",
        "UPDATE t SET id = 100 WHERE id = 8",
    )
    for change in changes:
        warehouse.run_script(change)
        (view,) = warehouse.refresh().views
        assert view.strategy == "differential"
        assert "apply the change set (own commit)" in [title for title, _ in view.steps]
        assert warehouse.verify("v").equal
    assert not by_sql
