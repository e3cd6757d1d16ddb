"""Settings that change results belong to a view, not to whoever refreshes it nor to the view before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.execution.spark_session import Sessions

pytestmark = pytest.mark.spark

ESCAPED = "spark.sql.parser.escapedStringLiterals"
VIEWS = {
    ESCAPED: ("true", r"SELECT id, s RLIKE '^\d$' AS is_digit FROM t"),
    "spark.sql.ansi.enabled": ("false", "SELECT id, CAST(s AS INT) AS number FROM t"),
    "spark.sql.function.concatBinaryAsString": (
        "true",
        "SELECT id, hex(CAST(s AS BINARY) || X'41') AS h FROM t",
    ),
    "spark.sql.legacy.castComplexTypesToString.enabled": (
        "true",
        "SELECT id, CAST(array(s) AS STRING) AS c FROM t",
    ),
    "spark.sql.legacy.setopsPrecedence.enabled": (
        "true",
        "SELECT id FROM t UNION SELECT 2 AS id INTERSECT SELECT 2 AS id",
    ),
    "spark.sql.jsonGenerator.ignoreNullFields": ("false", "SELECT id, to_json(struct(s)) AS j FROM t"),
}


def name_of(setting: str) -> str:
    return setting.split(".")[-1] if not setting.endswith("enabled") else setting.split(".")[-2]


def test_every_view_runs_with_its_own_settings_and_with_none_of_the_others(
    spark: Any, tmp_path: Path
) -> None:
    plain = Warehouse(tmp_path / "warehouse", spark.newSession())
    plain.run_script("CREATE TABLE t (id INT, s STRING); INSERT INTO t VALUES (1, '5'), (2, '6')")
    truths: dict[str, tuple[Any, str]] = {}
    address = plain._workspace.data_address(next(iter(plain._workspace.state.read().tables.values())))
    for setting, (value, query) in VIEWS.items():
        session = spark.newSession()
        session.conf.set(setting, value)
        Warehouse(plain.path, session).sql(f"CREATE MATERIALIZED VIEW {name_of(setting)}_set AS {query}")
        plain.sql(f"CREATE MATERIALIZED VIEW {name_of(setting)}_unset AS {query}")
        truths[f"{name_of(setting)}_set"] = session, query
        truths[f"{name_of(setting)}_unset"] = plain._workspace.sessions.user, query
    plain.run_script("INSERT INTO t VALUES (3, '7'), (4, NULL); DELETE FROM t WHERE id = 1")
    # In the order of their names, which mixes both kinds.
    report = Warehouse(plain.path, spark.newSession()).refresh()
    for name, (session, query) in truths.items():
        truth = session.sql(query.replace("FROM t", f"FROM delta.`{address}`")).collect()
        held = plain.sql(f"SELECT * FROM {name}").collect()
        assert sorted(map(repr, held)) == sorted(map(repr, truth)), name
        assert plain.verify(name).equal, name
    found = {view.name: (view.strategy, view.reason) for view in report.views}
    assert found["escapedStringLiterals_set"] == (
        "recompute",
        f"t changed; the setting {ESCAPED} = true changes how its text is read",
    )
    assert found["escapedStringLiterals_unset"][0] == "differential"
    assert found["setopsPrecedence_set"][0] == "recompute"


def test_settings_are_applied_by_few_calls(spark: Any) -> None:
    """One call tells what a session was told; afterwards only differences are set."""
    sessions = Sessions(spark)
    sessions.own_with({"spark.sql.ansi.enabled": "true"})
    told: list[str] = []
    own = sessions._own.session

    class Heard:
        def set(self, key: str, value: str) -> None:
            told.append(f"{key} = {value}")

        def unset(self, key: str) -> None:
            told.append(f"{key} unset")

    sessions._own.session = type("Session", (), {"conf": Heard()})()
    sessions.own_with({"spark.sql.ansi.enabled": "true"})
    assert told == []
    sessions.own_with({"spark.sql.ansi.enabled": "true", ESCAPED: "true"})
    sessions.own_with({"spark.sql.ansi.enabled": "true"})
    assert told == [f"{ESCAPED} = true", f"{ESCAPED} unset"]
    sessions._own.session = own


def test_a_zero_with_another_sign_reaches_views_by_both_readers(
    warehouse: Warehouse, spark: Any, tmp_path: Path
) -> None:
    for name, mode in (("by_delta_rs", "none"), ("by_spark", "name")):
        address = tmp_path / name
        spark.sql(
            f"CREATE TABLE delta.`{address}` (id INT, x DOUBLE, f FLOAT, n ARRAY<DOUBLE>) USING delta TBLPROPERTIES "
            f"('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = '{mode}')"
        )
        spark.sql(
            f"INSERT INTO delta.`{address}` SELECT id, 0.0D, 0.0F, array(0.0D) FROM range(1, 5) AS r(id)"
        )
        spark.sql(f"INSERT INTO delta.`{address}` VALUES (9, double('NaN'), float('NaN'), NULL)")
        warehouse.sql(f"ATTACH TABLE {name} FROM DELTA '{address}'")
        warehouse.run_script(f"""
            CREATE MATERIALIZED VIEW signs_{name} AS
              SELECT id, CAST(x AS STRING) AS x, CAST(f AS STRING) AS f, CAST(n[0] AS STRING) AS n FROM {name};
            CREATE MATERIALIZED VIEW counted_{name} AS
              SELECT CAST(x AS STRING) AS x, count(*) AS n FROM {name} GROUP BY CAST(x AS STRING);
            CREATE MATERIALIZED VIEW zeros_{name} AS SELECT x, f FROM {name}
        """)
        spark.sql(f"UPDATE delta.`{address}` SET x = -x WHERE id IN (1, 9)")
        spark.sql(f"UPDATE delta.`{address}` SET f = -f WHERE id = 2")
        spark.sql(f"UPDATE delta.`{address}` SET n = array(-0.0D) WHERE id = 3")
    for round in range(2):
        for view in warehouse.refresh().views:
            assert view.strategy == "differential", view
            assert warehouse.verify(view.name).equal, view
        for name in ("by_delta_rs", "by_spark"):
            rows = sorted(
                tuple(row) for row in warehouse.sql(f"SELECT * FROM signs_{name} WHERE id < 9").collect()
            )
            assert (
                rows
                == [
                    (1, "-0.0", "0.0", "0.0"),
                    (2, "0.0", "-0.0", "0.0"),
                    (3, "0.0", "0.0", "-0.0"),
                    (4, "0.0", "0.0", "0.0"),
                ][round:]
            ), name
            spark.sql(f"DELETE FROM delta.`{tmp_path / name}` WHERE id = {round + 1}")
