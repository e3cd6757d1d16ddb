"""What other processes do to attached tables beside changing rows: views recompute once and say why, or do not notice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from viewkeeper import Warehouse, errors
from viewkeeper.execution.reports import RefreshFailedError

pytestmark = pytest.mark.spark

MAPPED = "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name'"
PLAIN = "'delta.enableChangeDataFeed' = 'true'"


def attach(warehouse: Warehouse, spark: Any, address: Path, columns: str, properties: str = PLAIN) -> str:
    """An attached table by the name of its folder; the relation under which other processes know it."""
    table = f"delta.`{address}`"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ({properties})")
    warehouse.sql(f"ATTACH TABLE {address.name} FROM DELTA '{address}'")
    return table


def refreshed(warehouse: Warehouse) -> dict[str, tuple[str, str]]:
    report = warehouse.refresh()
    for view in report.views:
        verdict = warehouse.verify(view.name)
        assert verdict.equal, (view, verdict)
    return {view.name: (view.strategy, view.reason) for view in report.views}


def rows(warehouse: Warehouse, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in warehouse.sql(text).collect()), key=repr)


def test_not_null_that_was_dropped_is_relied_on_no_more(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    a = attach(warehouse, spark, tmp_path / "a", "x INT NOT NULL")
    b = attach(warehouse, spark, tmp_path / "b", "y INT NOT NULL, z INT")
    spark.sql(f"INSERT INTO {a} VALUES (1), (2)")
    spark.sql(f"INSERT INTO {b} VALUES (1, 1)")
    warehouse.run_script("""
        CREATE MATERIALIZED VIEW low AS SELECT y FROM b;
        CREATE MATERIALIZED VIEW missing AS SELECT x FROM a WHERE x NOT IN (SELECT y FROM b);
        CREATE MATERIALIZED VIEW missing_too AS SELECT x FROM a WHERE x NOT IN (SELECT y FROM low);
        CREATE MATERIALIZED VIEW missing_groups AS
        SELECT x, s FROM (SELECT x, sum(CAST(x AS DOUBLE)) AS s FROM a GROUP BY x) AS g WHERE x NOT IN (SELECT y FROM b)
    """)
    assert "kept" in str(warehouse.sql("DESCRIBE missing_groups")), "its text over the groups is stored"
    assert rows(warehouse, "SELECT * FROM missing") == [(2,)]
    spark.sql(f"ALTER TABLE {b} ALTER COLUMN y DROP NOT NULL")
    spark.sql(f"INSERT INTO {b} VALUES (NULL, 2)")
    refreshed(warehouse)
    for view in ("missing", "missing_too", "missing_groups"):
        assert rows(warehouse, f"SELECT * FROM {view}") == []
    warehouse.sql("CREATE MATERIALIZED VIEW later AS SELECT x FROM a WHERE x NOT IN (SELECT z + y FROM b)")
    spark.sql(f"INSERT INTO {a} VALUES (7)")
    refreshed(warehouse)


def test_not_null_that_was_dropped_before_a_view_is_created(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    a = attach(warehouse, spark, tmp_path / "a", "x INT NOT NULL")
    b = attach(warehouse, spark, tmp_path / "b", "y INT NOT NULL")
    spark.sql(f"INSERT INTO {a} VALUES (1), (2)")
    spark.sql(f"ALTER TABLE {b} ALTER COLUMN y DROP NOT NULL")
    warehouse.sql("CREATE MATERIALIZED VIEW missing AS SELECT x FROM a WHERE x NOT IN (SELECT y FROM b)")
    spark.sql(f"INSERT INTO {b} VALUES (NULL)")
    refreshed(warehouse)
    assert rows(warehouse, "SELECT * FROM missing") == []


def test_columns_that_are_dropped_and_added_again_concern_those_who_read_them(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    t = attach(warehouse, spark, tmp_path / "t", "id INT, b INT, c STRING, d INT", MAPPED)
    other = attach(warehouse, spark, tmp_path / "other", "id INT")
    spark.sql(f"INSERT INTO {t} VALUES (1, 10, 'x', 1), (2, 20, 'y', 2)")
    warehouse.run_script("""
        CREATE MATERIALIZED VIEW with_b AS SELECT id, b FROM t;
        CREATE MATERIALIZED VIEW by_b AS SELECT b, count(*) AS n FROM t GROUP BY b;
        CREATE MATERIALIZED VIEW without_b AS SELECT id, c FROM t;
        CREATE MATERIALIZED VIEW beside AS SELECT id FROM other
    """)
    spark.sql(f"ALTER TABLE {t} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN b INT")
    spark.sql(f"INSERT INTO {t} (id, b, c, d) VALUES (3, 30, 'z', 3)")
    found = refreshed(warehouse)
    assert rows(warehouse, "SELECT * FROM with_b") == [(1, None), (2, None), (3, 30)]
    for view in ("with_b", "by_b"):
        assert found[view] == (
            "recompute",
            "t changed; the column b of t was dropped and added again",
        )
    assert found["without_b"][0] == "differential"
    spark.sql(f"INSERT INTO {t} (id, b, c, d) VALUES (4, 40, 'z', 4)")
    assert {strategy for strategy, _ in refreshed(warehouse).values()} == {"differential", "none"}
    # A lost column is the matter of its own views.
    spark.sql(f"ALTER TABLE {t} DROP COLUMN b")
    spark.sql(f"INSERT INTO {t} (id, c, d) VALUES (5, 'v', 5)")
    spark.sql(f"INSERT INTO {other} VALUES (1)")
    with pytest.raises(RefreshFailedError, match="the column b of t was dropped or renamed") as caught:
        warehouse.refresh()
    failed = {view.name for view in caught.value.report.views if view.error is not None}
    assert failed == {"with_b", "by_b"}
    assert len(rows(warehouse, "SELECT * FROM without_b")) == 5 and rows(
        warehouse, "SELECT * FROM beside"
    ) == [(1,)]
    assert warehouse.verify("without_b").equal


def test_a_table_that_is_gone_stops_its_own_views_only(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    gone = attach(warehouse, spark, tmp_path / "gone", "id INT")
    here = attach(warehouse, spark, tmp_path / "here", "id INT")
    warehouse.run_script("""
        CREATE MATERIALIZED VIEW over_gone AS SELECT id FROM gone;
        CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM over_gone;
        CREATE MATERIALIZED VIEW over_here AS SELECT id FROM here
    """)
    spark.sql(f"INSERT INTO {here} VALUES (1)")
    kept = tmp_path / "elsewhere"
    shutil.move(tmp_path / "gone", kept)
    with pytest.raises(RefreshFailedError, match="the table gone cannot be read") as caught:
        warehouse.refresh()
    assert {view.name for view in caught.value.report.views if view.error} == {"over_gone", "above"}
    assert rows(warehouse, "SELECT * FROM over_here") == [(1,)]
    shutil.move(kept, tmp_path / "gone")
    spark.sql(f"INSERT INTO {gone} VALUES (5)")
    refreshed(warehouse)
    assert rows(warehouse, "SELECT * FROM over_gone") == [(5,)]


def _restore(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")


def _replace(spark: Any, address: Path, table: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} USING delta TBLPROPERTIES ({PLAIN}) AS SELECT 7 AS id, 'r' AS v"
    )


def _replace_other_columns(spark: Any, address: Path, table: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} USING delta TBLPROPERTIES ({PLAIN}) AS SELECT 'r' AS v, 1 AS new, 7 AS id"
    )


def _another_table(spark: Any, address: Path, table: str) -> None:
    """A folder of the same name, and as many versions."""
    versions = DeltaTable(str(address)).version()
    shutil.rmtree(address)
    spark.sql(f"CREATE TABLE {table} (id INT, v STRING) USING delta TBLPROPERTIES ({PLAIN})")
    for number in range(versions):
        spark.sql(f"INSERT INTO {table} VALUES ({100 + number}, 'n')")


def _overwrite(spark: Any, address: Path, table: str) -> None:
    frame = spark.sql("SELECT 8 AS id, 'o' AS v")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(address))


def _truncate(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"TRUNCATE TABLE {table}")


def _feed_off_and_on(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    spark.sql(f"UPDATE {table} SET v = 'unheard' WHERE id = 1")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")


def _feed_off(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    spark.sql(f"UPDATE {table} SET v = 'unheard' WHERE id = 1")


def _vacuum(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 'vacuumed' WHERE id = 1")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    for folder in (address / "_change_data",):
        shutil.rmtree(folder, ignore_errors=True)
    live = {Path(file).name for file in DeltaTable(str(address)).file_uris()}
    for file in address.glob("*.parquet"):
        if file.name not in live:
            file.unlink()


def _clean_log(spark: Any, address: Path, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 'cleaned' WHERE id = 1")
    spark.sql(f"INSERT INTO {table} VALUES (9, 'last')")
    newest = DeltaTable(str(address))
    newest.create_checkpoint()
    for number in range(newest.version()):
        (address / "_delta_log" / f"{number:020}.json").unlink()


EVENTS: dict[str, tuple[Callable[[Any, Path, str], None], str]] = {
    "restored": (_restore, ""),
    "replaced": (_replace, "replaced"),
    "replaced_otherwise": (_replace_other_columns, "replaced"),
    "another": (_another_table, "replaced"),
    "overwritten": (_overwrite, ""),
    "truncated": (_truncate, ""),
    "unheard": (_feed_off_and_on, "cannot be read"),
    "switched_off": (_feed_off, "cannot be read"),
    "vacuumed": (_vacuum, "cannot be read"),
    "cleaned": (_clean_log, "gone|no longer tells"),
}


def test_views_over_tables_whose_history_others_break(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    writer = spark.newSession()
    tables = {name: attach(warehouse, writer, tmp_path / name, "id INT, v STRING") for name in EVENTS}
    for name, table in tables.items():
        writer.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'b')")
        writer.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        warehouse.sql(f"CREATE MATERIALIZED VIEW plain_{name} AS SELECT id, v FROM {name}")
        warehouse.sql(
            f"CREATE MATERIALIZED VIEW groups_{name} AS SELECT v, count(*) AS n FROM {name} GROUP BY v"
        )
    for name, (event, _) in EVENTS.items():
        event(writer, tmp_path / name, tables[name])
    found = refreshed(warehouse)
    for name, (_, reason) in EVENTS.items():
        truth = sorted(
            (tuple(row) for row in writer.sql(f"SELECT id, v FROM {tables[name]}").collect()), key=repr
        )
        assert rows(warehouse, f"SELECT id, v FROM plain_{name}") == truth, name
        for view in (f"plain_{name}", f"groups_{name}"):
            strategy, told = found[view]
            if reason:
                assert strategy == "recompute" and any(each in told for each in reason.split("|")), (
                    view,
                    told,
                )
    # And everything goes on.
    for table in tables.values():
        writer.sql(f"INSERT INTO {table} (id, v) VALUES (50, 'on')")
    again = refreshed(warehouse)
    for name in EVENTS:
        assert rows(warehouse, f"SELECT count(*) FROM plain_{name} WHERE id = 50") == [(1,)], name
        assert again[f"plain_{name}"][0] == "differential", (
            "new files tell what was inserted, with or without a feed"
        )


def test_a_strict_view_says_why_it_would_be_recomputed(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    t = attach(warehouse, spark, tmp_path / "t", "id INT, v STRING")
    spark.sql(f"INSERT INTO {t} VALUES (1, 'a')")
    warehouse.sql("CREATE MATERIALIZED VIEW kept REFRESH STRICT AS SELECT v FROM t")
    _feed_off_and_on(spark, tmp_path / "t", t)
    with pytest.raises(RefreshFailedError, match="kept would have to be recomputed: the changes of"):
        warehouse.refresh()
    assert issubclass(errors.RefreshPolicyError, errors.UserError)
