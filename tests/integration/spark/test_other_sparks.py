"""The same scenario on every way to reach Spark: a session handed in, Spark Connect, a standalone cluster,
and a warehouse on storage that only Spark can reach.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_servers import connect_server, standalone_cluster
from viewkeeper import Warehouse
from viewkeeper.execution.jars import find_jars
from viewkeeper.execution.spark_session import OWN_SETTINGS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCENARIO = Path(__file__).parent / "scenario.py"


def test_spark_connect(tmp_path: Path) -> None:
    from tests.integration.spark.scenario import play

    with (
        connect_server(tmp_path, find_jars()) as server,
        Warehouse(tmp_path / "warehouse", server.url) as warehouse,
    ):
        play(warehouse)


def test_standalone_cluster(tmp_path: Path) -> None:
    """A driver of its own process against a master and two workers."""
    with standalone_cluster(tmp_path, workers=2) as cluster:
        command = [sys.executable, str(SCENARIO), str(tmp_path / "warehouse"), cluster.url]
        (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 2\n")
        environment = {**cluster.driver_env(), "SPARK_CONF_DIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "the scenario passed" in done.stdout


def test_a_session_handed_in_keeps_its_settings_and_tables(tmp_path: Path, spark: Any) -> None:
    """I28"""
    from tests.integration.spark.scenario import play

    users = spark.newSession()
    users.conf.set("spark.sql.shuffle.partitions", "3")
    before = {key: users.conf.get(key, None) for key in (*OWN_SETTINGS, "spark.sql.shuffle.partitions")}
    views_before = [table.name for table in users.catalog.listTables()]
    warehouse = Warehouse(tmp_path / "warehouse", users)
    play(warehouse)
    after = {key: users.conf.get(key, None) for key in before}
    assert after == before
    assert [table.name for table in users.catalog.listTables()] == views_before
    users.range(3).createOrReplaceTempView("my_rows")
    assert warehouse.sql("SELECT count(*) AS n FROM my_rows").collect()[0]["n"] == 3
    warehouse.sql("INSERT INTO item SELECT CAST(id + 100 AS INT), 'new' FROM my_rows")
    assert warehouse.sql("SELECT count(*) AS n FROM item").collect()[0]["n"] == 6
    warehouse.close()
    assert users.range(2).count() == 2, "a session handed in must not be stopped"


def test_storage_that_only_spark_can_reach(tmp_path: Path, spark: Any) -> None:
    """A viewfs mount: Hadoop knows it, delta-rs does not."""
    from tests.integration.spark.scenario import play

    session = spark.newSession()
    mount = "fs.viewfs.mounttable.vk.link./data"
    session.conf.set(mount, f"file://{tmp_path}")
    warehouse = Warehouse("viewfs://vk/data/warehouse", session)
    play(warehouse)
    assert (tmp_path / "warehouse" / "_viewkeeper" / "catalogue" / "_delta_log").is_dir()
    assert Warehouse("viewfs://vk/data/warehouse", session).view_names() == ["sold", "totals"]


def test_a_session_without_delta_is_refused_with_the_way_out() -> None:
    from viewkeeper.errors import EnvironmentProblem
    from viewkeeper.execution.spark_session import Sessions

    class Plain:
        class conf:
            @staticmethod
            def get(key: str, default: Any = None) -> Any:
                return default

    with pytest.raises(EnvironmentProblem, match="the Spark session has no Delta Lake") as caught:
        _ = Sessions(Plain()).user
    assert "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension" in caught.value.hint


def test_an_address_where_nobody_answers(tmp_path: Path) -> None:
    from viewkeeper.errors import EnvironmentProblem, SparkUnavailableError

    with pytest.raises(
        SparkUnavailableError, match=r"no Spark Connect server answers at sc://127\.0\.0\.1:1"
    ):
        Warehouse(tmp_path / "w", "sc://127.0.0.1:1").sql("SELECT 1")
    with pytest.raises(EnvironmentProblem, match="nonsense is no address of a Spark"):
        Warehouse(tmp_path / "w", "nonsense").sql("SELECT 1")
