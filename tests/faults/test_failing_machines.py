"""Machines that let us down in the middle: one clear error, the last epoch readable, the next refresh right."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.killing import CHAIN, change_base, contents, make_warehouse, truth
from tests.support.small_disk import small_disk
from tests.support.spark_servers import connect_server
from viewkeeper import RefreshFailedError, Warehouse, errors
from viewkeeper.execution.jars import find_jars
from viewkeeper.execution.progress import Event, Moment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_PROCESSES = multiprocessing.get_context("forkserver")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def _data_files(warehouse: Warehouse, name: str) -> list[Path]:
    record = next(r for r in warehouse._workspace.state.read().objects() if r.name.name == name)
    return sorted(Path(warehouse._workspace.data_address(record)).glob("*.parquet"))


@pytest.mark.parametrize(
    "moment", [Moment.PINNED, Moment.CHANGE_SET_STORED, Moment.PUBLISHING], ids=lambda m: m.name
)
def test_ctrl_c_in_the_middle(path: Path, spark: Any, moment: Moment) -> None:
    warehouse = make_warehouse(path, spark, CHAIN)
    old = contents(warehouse)
    change_base(warehouse, 5)

    def interrupt(event: Event) -> None:
        if event.moment is moment:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Warehouse(path, spark, on_progress=interrupt).refresh()
    assert contents(warehouse) == old
    assert "left behind" in str(warehouse.unfinished())
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_data_file(path: Path, spark: Any, damage: str) -> None:
    warehouse = make_warehouse(path, spark, CHAIN)
    old = contents(warehouse)
    before = set(_data_files(warehouse, "base"))
    change_base(warehouse, 1)
    victims = {file: file.read_bytes() for file in set(_data_files(warehouse, "base")) - before}
    assert victims
    for victim, whole in victims.items():
        victim.with_name(f".{victim.name}.crc").unlink(missing_ok=True)
        if damage == "missing":
            victim.unlink()
        else:
            victim.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RefreshFailedError, match=r"part-.*parquet"):
        warehouse.refresh()
    assert contents(warehouse) == old
    for victim, whole in victims.items():
        victim.write_bytes(whole)
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "2m") as folder:
        yield folder


def test_a_full_disk(disk: Path, spark: Any) -> None:
    warehouse = make_warehouse(disk / "warehouse", spark, CHAIN)
    old = contents(warehouse)
    change_base(warehouse, 2)
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    with pytest.raises(errors.StorageError, match="the disk is full"):
        warehouse.refresh()
    ballast.unlink()
    assert contents(warehouse) == old
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_connect_server_that_dies_in_the_middle(tmp_path: Path, path: Path, spark: Any) -> None:
    warehouse = make_warehouse(path, spark, CHAIN)
    old = contents(warehouse)
    change_base(warehouse, 3)
    with connect_server(tmp_path, find_jars()) as server:

        def kill_server(event: Event) -> None:
            if event.moment is Moment.CHANGE_SET_STORED:
                server.kill()

        remote = Warehouse(path, server.url, on_progress=kill_server)
        with pytest.raises(errors.SparkUnavailableError, match="Spark died or cannot be reached"):
            remote.refresh()
        remote.close()
    assert contents(warehouse) == old
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def _refresh_while_java_dies(path: str, answers: Any) -> None:
    """An embedded client whose JVM dies: an error first, and then, in the same process, a refresh that works."""
    java: list[int] = []

    def kill_java(event: Event) -> None:
        if event.moment is Moment.CHANGE_SET_STORED and not java:
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            java.extend(
                int(child) for child in children if b"java" in Path(f"/proc/{child}/cmdline").read_bytes()
            )
            os.kill(java[0], signal.SIGKILL)

    warehouse = Warehouse(path, on_progress=kill_java)
    try:
        warehouse.refresh()
        answers.put("no error")
    except errors.SparkUnavailableError as error:
        answers.put(error.message)
    answers.put([view.strategy for view in warehouse.refresh().views])
    warehouse.close()


def test_java_that_dies_in_the_middle(path: Path, spark: Any) -> None:
    warehouse = make_warehouse(path, spark, CHAIN)
    change_base(warehouse, 4)
    answers = _PROCESSES.Queue()
    process = _PROCESSES.Process(target=_refresh_while_java_dies, args=(str(path), answers))
    process.start()
    assert "Spark died or cannot be reached" in answers.get(timeout=300)
    assert answers.get(timeout=300) == ["differential", "differential"], "the left epoch is repeated"
    process.join(60)
    assert contents(warehouse) == truth(warehouse)


def test_a_foreign_commit_is_noticed_and_not_built_upon(path: Path, spark: Any) -> None:
    """I16"""
    warehouse = make_warehouse(path, spark, CHAIN)
    old = contents(warehouse)
    record = next(v for v in warehouse._workspace.state.read().views.values() if v.name.name == "low")
    rows = warehouse._workspace.layout.rows(record.location)
    spark.sql(f"DELETE FROM delta.`{rows}` WHERE v = 5").collect()
    assert contents(warehouse) == old, "readers see the published epoch"
    assert "changed by somebody else" in str(warehouse.views())
    change_base(warehouse, 6)
    with pytest.raises(RefreshFailedError, match="somebody else changed the table of low: version 1, DELETE"):
        warehouse.refresh()
    assert contents(warehouse) == old
    warehouse.sql("RESTORE MATERIALIZED VIEW low")
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def test_two_refreshes_at_once(path: Path, spark: Any) -> None:
    """I12: The second is told who holds the views; a refresh of other views goes on."""
    warehouse = make_warehouse(path, spark, CHAIN)
    warehouse.run_script("CREATE TABLE other (x INT); CREATE MATERIALIZED VIEW apart AS SELECT x FROM other")
    change_base(warehouse, 7)
    warehouse.sql("INSERT INTO other VALUES (1)")
    messages: list[str] = []

    def interfere(event: Event) -> None:
        if event.moment is Moment.CHANGE_SET_STORED and not messages:
            with pytest.raises(errors.RefreshConflictError) as caught:
                Warehouse(path, spark).refresh("high")
            messages.append(caught.value.message)
            messages.append(Warehouse(path, spark).refresh("apart").views[0].strategy)
            with pytest.raises(errors.RefreshConflictError):
                Warehouse(path, spark).sql("DROP MATERIALIZED VIEW high")

    Warehouse(path, spark, on_progress=interfere).refresh("high")
    assert f"process {os.getpid()}" in messages[0] and "is being refreshed by" in messages[0]
    assert messages[1] == "differential"
    assert contents(warehouse)["apart"] == [(1,)]
    assert warehouse.verify("high").equal


def test_old_commits_stay_readable_after_ten_days(path: Path, spark: Any) -> None:
    """Delta refuses superseded versions older than a week unless told otherwise; epochs and verification need them."""
    import time

    warehouse = make_warehouse(path, spark, CHAIN)
    first = contents(warehouse)
    epoch = warehouse.history("high")[-1].epoch
    change_base(warehouse, 8)
    warehouse.refresh()
    warehouse.sql("INSERT INTO base VALUES (9, 9)")
    long_ago = time.time() - 10 * 24 * 3600
    for file in path.rglob("*"):
        if file.is_file() and "_viewkeeper" not in file.parts:
            os.utime(file, (long_ago, long_ago))
    fresh = spark.newSession()
    again = Warehouse(path, fresh)
    rows = sorted(
        (tuple(r) for r in again.sql(f"SELECT * FROM high AS OF EPOCH {epoch}").collect()), key=repr
    )
    assert rows == first["high"]
    for name in again.view_names():
        assert again.verify(name).equal, "verification reads superseded versions of base"
    again.refresh()
    assert contents(again) == truth(again)
