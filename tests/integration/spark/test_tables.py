"""Base tables on real Delta: every type, hostile names, defaults, attached tables, changes, bad queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse, errors

pytestmark = pytest.mark.spark

TYPES = {
    "BOOLEAN": "true",
    "TINYINT": "CAST(1 AS TINYINT)",
    "SMALLINT": "CAST(2 AS SMALLINT)",
    "INT": "3",
    "BIGINT": "4000000000",
    "FLOAT": "CAST(1.5 AS FLOAT)",
    "DOUBLE": "CAST('NaN' AS DOUBLE)",
    "DECIMAL(38,10)": "1234567890.0123456789",
    "STRING": "'ü\\'\"`;--'",
    "VARCHAR(5)": "'abc'",
    "CHAR(4)": "'x'",
    "BINARY": "X'00FF'",
    "DATE": "DATE'1582-10-04'",
    "TIMESTAMP": "TIMESTAMP'9999-12-31 23:59:59.999999'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-02-29 12:00:00'",
    "ARRAY<INT>": "array(1, NULL)",
    "MAP<STRING, INT>": "map('b', 2, 'a', 1)",
    "STRUCT<`a b`: INT, `m`: MAP<INT, ARRAY<STRING>>>": "named_struct('a b', 1, 'm', map(1, array('x')))",
    "VARIANT": "parse_json('{\"k\": [1, 2]}')",
}

HOSTILE = [
    "with space",
    "with.dot",
    "with'quote",
    'with"double',
    "semi;colon--comment/*",
    "SELECT",
    "größe_日本",
    "a,b(c){d}=e",
]


def test_every_type_that_delta_stores_goes_through_a_view_and_back(warehouse: Warehouse) -> None:
    columns = ", ".join(f"c{number} {data_type}" for number, data_type in enumerate(TYPES))
    values = ", ".join(TYPES.values())
    nulls = ", ".join(["NULL"] * len(TYPES))
    warehouse.run_script(f"""
        CREATE TABLE everything (id INT PRIMARY KEY, {columns});
        INSERT INTO everything VALUES (1, {values}), (2, {values}), (3, {nulls});
        CREATE MATERIALIZED VIEW copies AS SELECT * FROM everything;
        CREATE MATERIALIZED VIEW without_key AS
          SELECT {", ".join(f"c{number}" for number in range(len(TYPES)))} FROM everything;
        DELETE FROM everything WHERE id = 1;
        INSERT INTO everything VALUES (4, {values}), (5, {nulls})
    """)
    report = warehouse.refresh()
    changes = {view.name: (view.inserted, view.deleted) for view in report.views}
    assert changes == {"copies": (2, 1), "without_key": (1, 0)}, (
        "equal maps and NaN must not count as changes"
    )
    for name in ("copies", "without_key"):
        assert warehouse.verify(name).equal, warehouse.verify(name)
    described = {row[0]: row[1] for row in warehouse.sql("DESCRIBE copies").rows}
    for number, data_type in enumerate(TYPES):
        expected = data_type if not data_type.startswith(("VARCHAR", "CHAR")) else ("STRING", data_type)
        assert (
            described[f"c{number}"] in expected
            if isinstance(expected, tuple)
            else described[f"c{number}"] == expected
        )


def test_hostile_names_of_columns_tables_and_views(warehouse: Warehouse) -> None:
    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    columns = ", ".join(
        f"{quoted(name)} STRING COMMENT 'it''s \\\\ {number}'" for number, name in enumerate(HOSTILE)
    )
    table, view = quoted("ta`ble; DROP TABLE x--"), quoted("vi'ew")
    values = ", ".join(["'Robert''); DROP TABLE students;--'"] * len(HOSTILE))
    warehouse.run_script(f"""
        CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) COMMENT 'a ''comment''';
        INSERT INTO {table} VALUES (1, {values});
        CREATE MATERIALIZED VIEW {view} AS SELECT * FROM {table} AS {quoted("al`ias")};
        UPDATE {table} SET {quoted(HOSTILE[0])} = 'changed' WHERE id = 1
    """)
    report = warehouse.refresh()
    assert (report.views[0].inserted, report.views[0].deleted) == (1, 1)
    row = warehouse.sql(f"SELECT * FROM {view}").collect()[0].asDict()
    assert row[HOSTILE[0]] == "changed"
    assert row[HOSTILE[2]] == "Robert'); DROP TABLE students;--"
    assert set(row) == {"id", *HOSTILE}
    assert warehouse.verify("`vi'ew`").equal


def test_column_mapping_only_where_a_name_needs_it(warehouse: Warehouse) -> None:
    from deltalake import DeltaTable

    warehouse.run_script("""
        CREATE TABLE plain (a INT);
        CREATE TABLE mapped (`a b` INT);
        CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM plain
    """)

    def mode(name: str) -> str:
        record = next(r for r in warehouse._workspace.state.read().objects() if r.name.name == name)
        configuration = DeltaTable(warehouse._workspace.data_address(record)).metadata().configuration
        return str(configuration.get("delta.columnMapping.mode", "none"))

    assert [mode("plain"), mode("mapped"), mode("counted")] == ["none", "name", "name"]
    assert warehouse.sql("SELECT * FROM counted").columns == ["count(1)"]


def test_defaults_create_as_select_replace_and_time_travel(warehouse: Warehouse, rows: Any) -> None:
    warehouse.run_script("""
        CREATE TABLE t (id INT PRIMARY KEY, s STRING DEFAULT 'it''s', n INT DEFAULT (1 + 1));
        INSERT INTO t (id) VALUES (1);
        INSERT INTO t VALUES (2, DEFAULT, 7);
        CREATE TABLE u (PRIMARY KEY (id)) AS SELECT id, s FROM t WHERE id = 1;
        MERGE INTO u USING t ON u.id = t.id WHEN MATCHED THEN UPDATE SET s = t.s
          WHEN NOT MATCHED THEN INSERT (id, s) VALUES (t.id, 'new')
    """)
    assert rows(warehouse.sql("SELECT * FROM t")) == [(1, "it's", 2), (2, "it's", 7)]
    assert rows(warehouse.sql("SELECT * FROM u")) == [(1, "it's"), (2, "new")]
    assert rows(warehouse.sql("SELECT id FROM t VERSION AS OF 1 AS old")) == [(1,)]
    warehouse.sql("CREATE OR REPLACE TABLE u (other STRING)")
    assert rows(warehouse.sql("SELECT * FROM u")) == []
    warehouse.sql("TRUNCATE TABLE t")
    assert rows(warehouse.sql("SELECT * FROM t")) == []
    assert rows(warehouse.sql("WITH x AS (SELECT 5 AS id) SELECT * FROM x")) == [(5,)]


def test_attached_tables(warehouse: Warehouse, spark: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    spark.sql(
        f"CREATE TABLE delta.`{outside}` (id INT NOT NULL, v INT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    plain = tmp_path / "plain"
    spark.sql(f"CREATE TABLE delta.`{plain}` (id INT) USING delta")
    with pytest.raises(errors.UnsupportedError, match="has no change feed"):
        warehouse.sql(f"ATTACH TABLE p FROM DELTA '{plain}'")
    warehouse.sql(f"ATTACH TABLE outside FROM DELTA '{outside}' (PRIMARY KEY (id))")
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(v) AS total FROM outside")
    spark.sql(f"INSERT INTO delta.`{outside}` VALUES (1, 10), (2, 5)")
    warehouse.refresh()
    assert warehouse.sql("SELECT total FROM v").collect()[0]["total"] == 15
    warehouse.sql("DROP MATERIALIZED VIEW v")
    warehouse.sql("DROP TABLE outside")
    assert (outside / "_delta_log").is_dir(), "somebody else's table must stay"
    spark.sql(f"CREATE TABLE attached_by_name USING delta LOCATION '{outside}'")
    try:
        warehouse.sql("ATTACH TABLE named FROM TABLE attached_by_name (PRIMARY KEY (id))")
        assert warehouse.sql("SELECT count(*) AS n FROM named").collect()[0]["n"] == 2
    finally:
        spark.sql("DROP TABLE attached_by_name")


def test_append_only_tables_refuse_other_changes(warehouse: Warehouse) -> None:
    warehouse.run_script(
        "CREATE TABLE log (id INT); ALTER TABLE log SET APPEND ONLY; INSERT INTO log VALUES (1)"
    )
    with pytest.raises(errors.ViewkeeperError):
        warehouse.sql("DELETE FROM log")
    with pytest.raises(errors.InvalidStatementError, match="declared not to change"):
        warehouse.sql("UPDATE log SET id = 2")
    warehouse.run_script("ALTER TABLE log UNSET APPEND ONLY; DELETE FROM log")


def test_settings_of_creation_are_kept(warehouse: Warehouse, tmp_path: Path, spark: Any) -> None:
    """I23: A view created in Tokyo stays in Tokyo, whoever refreshes it."""
    tokyo = spark.newSession()
    tokyo.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    there = Warehouse(warehouse.path, tokyo)
    there.run_script("""
        CREATE TABLE moments (t TIMESTAMP);
        INSERT INTO moments VALUES (TIMESTAMP'2024-01-01 00:30:00');
        CREATE MATERIALIZED VIEW days AS SELECT CAST(t AS DATE) AS day FROM moments
    """)
    here = spark.newSession()
    here.conf.set("spark.sql.session.timeZone", "America/New_York")
    elsewhere = Warehouse(warehouse.path, here)
    elsewhere.sql("INSERT INTO moments VALUES (TIMESTAMP'2024-06-01 20:00:00')")
    elsewhere.refresh()
    days = sorted(str(row["day"]) for row in elsewhere.sql("SELECT day FROM days").collect())
    assert days == ["2024-01-01", "2024-06-02"]
    assert elsewhere.verify("days").equal
    assert here.conf.get("spark.sql.session.timeZone") == "America/New_York"


BAD_QUERIES = [
    ("SELECT nope(id) FROM t", errors.UnknownNameError, "there is no function nope", (1, 8, 8)),
    ("SELECT idd FROM t", errors.UnknownNameError, "there is no column idd here", (1, 8, 3)),
    ("SELECT * FROM tt", errors.UnknownNameError, "there is no table or view tt", (1, 15, 2)),
    ("SELECT id + array(1) AS x FROM t", errors.InvalidStatementError, "Spark refuses this", (1, 8, 13)),
    ("SELECT id, FROM t WHERE", errors.SqlSyntaxError, "not valid SQL|cannot parse", None),
    ("CREATE MATERIALIZED VIEW v AS\nSELECT nope(id) AS x FROM t", errors.UnknownNameError, "no function nope", (2, 8, 8)),
    ("CREATE MATERIALIZED VIEW v AS\nSELECT idd FROM t", errors.UnknownNameError, "there is no column idd here", (2, 8, 3)),
    ("CREATE MATERIALIZED VIEW v AS SELECT id, id FROM t", errors.InvalidStatementError, "two columns of the view would be called id", None),
    ("CREATE MATERIALIZED VIEW v AS SELECT id AS _vk_x FROM t", errors.InvalidStatementError, "_vk_x has a name that is reserved", None),
    ("CREATE MATERIALIZED VIEW v AS SELECT INTERVAL 1 DAY AS i FROM t", errors.UnsupportedError, "cannot store the type", None),
    ("CREATE MATERIALIZED VIEW v AS SELECT sum(id) FROM t WHERE id > 'x' + array(1)", errors.InvalidStatementError, "Spark refuses this", None),
    ("INSERT INTO t VALUES (NULL, 'x')", errors.ViewkeeperError, "NULL|null", None),
    ("INSERT INTO t VALUES (1)", errors.InvalidStatementError, "Spark refuses this", None),
    ("INSERT INTO t VALUES ('abc', 'x')", errors.ViewkeeperError, "CAST|cast|incompatible", None),
    ("UPDATE t SET idd = 3", errors.UnknownNameError, "there is no column idd here", None),
    ("CREATE TABLE bad AS SELECT nope(id) AS x FROM t", errors.UnknownNameError, "no function nope", None),
    ("CREATE TABLE bad (id INT DEFAULT nope())", errors.ViewkeeperError, "nope", None),
    ("CREATE TABLE bad AS DELETE FROM t", errors.InvalidStatementError, "a table is filled from a query", None),
    ("CREATE MATERIALIZED VIEW v AS SELECT 1 / (id - id) AS x FROM t", errors.QueryFailedError, "Division by zero", None),
]  # fmt: skip


@pytest.fixture(scope="module")
def small(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    opened = Warehouse(tmp_path_factory.mktemp("small") / "warehouse", spark)
    opened.run_script("CREATE TABLE t (id INT PRIMARY KEY, s STRING); INSERT INTO t VALUES (1, 'a')")
    return opened


@pytest.mark.parametrize(
    ("statement", "kind", "message", "place"), BAD_QUERIES, ids=[c[0][:50] for c in BAD_QUERIES]
)
def test_bad_queries_give_one_clear_error_at_the_users_own_text(
    small: Warehouse, statement: str, kind: type[errors.ViewkeeperError], message: str, place: Any
) -> None:
    before, folders = small._workspace.state.read(), sorted(Path(small.path).glob("*/*"))
    with pytest.raises(kind, match=message) as caught:
        small.sql(statement)
    if place is not None:
        location = caught.value.location
        assert location is not None and (location.line, location.column, location.length) == place
    assert "at org.apache" not in str(caught.value)
    after = small._workspace.state.read()
    assert (after.tables, after.views, after.claims) == (before.tables, before.views, before.claims)
    assert sorted(Path(small.path).glob("*/*")) == folders
