"""Nothing is built upon rows that a change set was not made for, whoever else writes, wakes up late or is at work beside us."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.crash.killing import PLAIN, change_base, contents, make_warehouse, truth
from viewkeeper import RefreshFailedError, Warehouse, errors
from viewkeeper.execution import apply, epochs, run_plan
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.sources.table_log import epoch_marker
from viewkeeper.storage.records import ViewRecord

pytestmark = pytest.mark.spark

MAPPED = "CREATE MATERIALIZED VIEW mapped AS SELECT k AS `the k`, v FROM base"
WAYS = {"overwrite": (PLAIN, 5_000), "own commit": (PLAIN, 0), "merge": (MAPPED, 5_000)}


@pytest.fixture(params=WAYS)
def path(request: pytest.FixtureRequest, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A warehouse with one view, for each way of applying a change set, and a change that it has not seen."""
    view, most_written_whole = WAYS[request.param]
    monkeypatch.setattr(apply, "OVERWRITE_ROWS", most_written_whole)
    change_base(make_warehouse(tmp_path / "warehouse", spark, view), 5)
    return tmp_path / "warehouse"


def once(moment: Moment, act: Callable[[], object]) -> Callable[[Event], None]:
    """A listener that acts the first time that a moment comes."""
    acted: list[bool] = []

    def listen(event: Event) -> None:
        if event.moment is moment and not acted:
            acted.append(True)
            act()

    return listen


def assert_fresh(warehouse: Warehouse) -> None:
    """Every view has seen every change, and equals its query."""
    assert all(warehouse.verify(name).equal for name in warehouse.view_names())
    assert "stale" not in str(warehouse.views())


def the_view(warehouse: Warehouse) -> ViewRecord:
    return next(iter(warehouse._workspace.state.read().views.values()))


def rows_of(warehouse: Warehouse) -> str:
    return warehouse._workspace.layout.rows(the_view(warehouse).location)


def test_a_foreign_insert_between_the_look_and_the_commit(path: Path, spark: Any) -> None:
    """I16: the rows of the other writer are not taken for ours."""
    warehouse = Warehouse(path, spark)
    old = contents(warehouse)
    insert = f"INSERT INTO delta.`{rows_of(warehouse)}` VALUES (8, 8, 1)"
    interfering = Warehouse(
        path, spark, on_progress=once(Moment.CHANGE_SET_STORED, lambda: spark.sql(insert))
    )
    with pytest.raises(RefreshFailedError, match="somebody else changed the table of"):
        interfering.refresh()
    assert contents(warehouse) == old
    warehouse.sql(f"RESTORE MATERIALIZED VIEW {the_view(warehouse).name}")
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def test_a_writer_that_wakes_up_after_its_epoch_was_given_up(path: Path, spark: Any) -> None:
    """I8: what it commits is undone, and the rows of the view are not doubled."""
    warehouse = Warehouse(path, spark)

    def wake() -> None:
        session = spark.newSession()
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", epoch_marker(1))
        session.sql(f"INSERT INTO delta.`{rows_of(warehouse)}` VALUES (8, 8, 1)").collect()

    Warehouse(path, spark, on_progress=once(Moment.CHANGE_SET_STORED, wake)).refresh()
    assert contents(warehouse) == truth(warehouse)
    assert warehouse.verify(str(the_view(warehouse).name)).equal


def test_what_a_restore_brings_back_must_be_the_base(tmp_path: Path, spark: Any) -> None:
    """A writer that wakes up late may also put the table back, to a version that is no longer published."""
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    change_base(warehouse, 1)
    warehouse.refresh()
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", epoch_marker(1, restored=0))
    session.sql(f"RESTORE TABLE delta.`{rows_of(warehouse)}` TO VERSION AS OF 0").collect()
    change_base(warehouse, 2)
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def test_a_process_whose_epoch_was_taken_over_commits_nothing(path: Path, spark: Any) -> None:
    """I13, before publishing: its claim is looked at before every commit."""
    warehouse = Warehouse(path, spark)
    before = DeltaTable(rows_of(warehouse)).version()

    def take_over() -> None:
        warehouse._workspace.state.change(lambda catalogue: replace(catalogue, claims=()))

    with pytest.raises(errors.TakenOverError):
        Warehouse(path, spark, on_progress=once(Moment.CHANGE_SET_STORED, take_over)).refresh()
    assert DeltaTable(rows_of(warehouse)).version() == before
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def test_the_change_set_that_is_stored_is_the_one_that_is_applied(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I8: two processes that repeat an epoch may get different answers from a query; only the first answer counts."""
    warehouse = make_warehouse(
        tmp_path / "warehouse", spark, "CREATE MATERIALIZED VIEW lucky AS SELECT k, rand() AS r FROM base"
    )
    change_base(warehouse, 5)
    append = run_plan.append_change_set

    def beaten(address: str, options: Any, changes: pa.Table, *others: Any, **named: Any) -> bool:
        other_answer = changes.set_column(
            changes.column_names.index("r"), "r", pa.array([2.0 + at for at in range(changes.num_rows)])
        )
        deletions = changes.filter(pa.compute.equal(changes.column("_vk_change"), "delete"))
        insertions = other_answer.filter(pa.compute.equal(other_answer.column("_vk_change"), "insert"))
        assert append(address, options, pa.concat_tables([deletions, insertions]), *others, **named)
        return append(address, options, changes, *others, **named)

    monkeypatch.setattr(run_plan, "append_change_set", beaten)
    warehouse.refresh()
    assert all(row["r"] >= 2.0 for row in warehouse.sql("SELECT r FROM lucky").collect())


def test_pins_never_move_a_view_back(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process refreshes the view to newer versions after ours were pinned and before they are claimed."""
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    change_base(warehouse, 1)
    pins_of = epochs.pins_of
    looks: list[int] = []

    def overtaken(*asked: Any) -> Any:
        found = pins_of(*asked)
        looks.append(1)
        if len(looks) == 1:
            change_base(warehouse, 2)
            Warehouse(warehouse.path, spark).refresh()
        return found

    monkeypatch.setattr(epochs, "pins_of", overtaken)
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)
    sources = [entry.sources for entry in warehouse.history("plain")]
    assert sources == sorted(sources, key=lambda each: list(each.values()))


def test_threads_share_a_warehouse(tmp_path: Path, spark: Any) -> None:
    """Their plans have temporary relations of the same names."""
    warehouse = make_warehouse(
        tmp_path / "warehouse",
        spark,
        "; ".join(f"CREATE MATERIALIZED VIEW v{n} AS SELECT k, v + {n} AS v FROM base" for n in range(4)),
    )
    for seed in range(3):
        change_base(warehouse, seed)
        failures: list[BaseException] = []

        def refresh(name: str, failures: list[BaseException] = failures) -> None:
            try:
                warehouse.refresh(name)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=refresh, args=(f"v{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert_fresh(warehouse)


def test_an_epoch_that_cannot_be_finished_is_given_up(tmp_path: Path, spark: Any) -> None:
    warehouse = make_warehouse(
        tmp_path / "warehouse", spark, f"{PLAIN}; CREATE MATERIALIZED VIEW other AS SELECT v FROM base"
    )
    change_base(warehouse, 1)

    def fail(event: Event) -> None:
        if event.moment is Moment.VIEW_STARTED and event.view == "plain":
            raise errors.StorageError("the disk of plain is gone.")

    unlucky = Warehouse(warehouse.path, spark, on_progress=fail)
    for _ in range(3):
        with pytest.raises(errors.StorageError, match="the disk of plain is gone"):
            unlucky.refresh()
    assert [view.strategy for view in unlucky.refresh("other").views] == ["differential"]
    given_up = next(entry for entry in warehouse.history("plain") if entry.outcome == "failed")
    assert given_up.error == "epoch 3 was given up after 3 tries: the disk of plain is gone."
    with pytest.raises(errors.StorageError):
        unlucky.refresh("plain")
    unlucky.sql("DROP MATERIALIZED VIEW plain")
    assert_fresh(warehouse)


def test_full_needs_no_epoch_that_was_left_behind(tmp_path: Path, spark: Any) -> None:
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    change_base(warehouse, 1)

    def stop() -> None:
        raise errors.StorageError("the disk is full.")

    with pytest.raises(errors.StorageError):
        Warehouse(warehouse.path, spark, on_progress=once(Moment.VIEW_COMMITTED, stop)).refresh()
    report = warehouse.sql("REFRESH MATERIALIZED VIEW plain FULL")
    assert [view.strategy for view in report.views] == ["recompute"]
    assert contents(warehouse) == truth(warehouse)


def test_restore_keeps_refreshes_away(tmp_path: Path, spark: Any) -> None:
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    spark.sql(f"DELETE FROM delta.`{rows_of(warehouse)}` WHERE v = 5").collect()
    change_base(warehouse, 1)

    def interfere() -> None:
        with pytest.raises(errors.RefreshConflictError):
            Warehouse(warehouse.path, spark).refresh()

    Warehouse(warehouse.path, spark, on_progress=once(Moment.PINNED, interfere)).sql(
        "RESTORE MATERIALIZED VIEW plain"
    )
    assert not warehouse._workspace.state.read().claims
    warehouse.refresh()
    assert contents(warehouse) == truth(warehouse)


def test_vacuum_keeps_change_sets_that_a_reader_has_not_consumed(tmp_path: Path, spark: Any) -> None:
    """I34: it used to take them away, and the view above lacked two epochs for ever."""
    warehouse = make_warehouse(
        tmp_path / "warehouse",
        spark,
        "CREATE MATERIALIZED VIEW v AS SELECT k, v FROM base; CREATE MATERIALIZED VIEW w AS SELECT k FROM v",
    )
    for seed in range(3):
        change_base(warehouse, seed)
        warehouse.refresh("v")
    warehouse.sql("VACUUM WAREHOUSE RETAIN 1 EPOCHS")
    report = warehouse.refresh()
    assert [view.strategy for view in report.views if view.name == "w"] == ["differential"]
    assert_fresh(warehouse)


def test_a_change_set_that_is_gone_is_broken_history(tmp_path: Path, spark: Any) -> None:
    warehouse = make_warehouse(
        tmp_path / "warehouse",
        spark,
        "CREATE MATERIALIZED VIEW v AS SELECT k, v FROM base; CREATE MATERIALIZED VIEW w AS SELECT k FROM v",
    )
    epochs = []
    for seed in range(3):
        change_base(warehouse, seed)
        epochs.append(warehouse.refresh("v").epoch)
    view = next(v for v in warehouse._workspace.state.read().views.values() if v.name.name == "v")
    DeltaTable(warehouse._workspace.layout.changes(view.location)).delete(f"_vk_epoch = {epochs[1]}")
    report = warehouse.refresh()
    assert [(view.strategy, view.reason) for view in report.views if view.name == "w"] == [
        ("recompute", f"v changed; the changes of v in epoch {epochs[1]} are no longer kept")
    ]
    assert_fresh(warehouse)


def test_vacuum_keeps_the_files_of_a_refresh_under_way(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow refresh: claimed two hours ago, its files written an hour ago, its commit still to come."""
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    for seed in range(2):
        change_base(warehouse, seed)
        warehouse.refresh()
    change_base(warehouse, 3)
    known = set(Path(warehouse.path).rglob("*.parquet"))
    append = run_plan.append_change_set

    def age_and_vacuum() -> None:
        long_ago = datetime.now(timezone.utc) - timedelta(hours=1)
        for file in set(Path(warehouse.path).rglob("*.parquet")) - known:
            if "views" in file.parts:
                os.utime(file, (long_ago.timestamp(), long_ago.timestamp()))
        claimed_at = (long_ago - timedelta(hours=1)).isoformat(timespec="milliseconds")
        warehouse._workspace.state.change(
            lambda catalogue: replace(
                catalogue, claims=tuple(replace(claim, claimed_at=claimed_at) for claim in catalogue.claims)
            )
        )
        Warehouse(warehouse.path, spark).sql("VACUUM WAREHOUSE RETAIN 1 EPOCHS")

    def held_up(address: str, options: Any, changes: pa.Table, *others: Any, **named: Any) -> bool:
        """Written, but not committed yet, when VACUUM comes."""
        uncommitted = Path(address) / "_vk_epoch=99" / "_vk_change=insert" / "part-0.parquet"
        uncommitted.parent.mkdir(parents=True)
        uncommitted.write_bytes(b"not committed yet")
        age_and_vacuum()
        assert uncommitted.exists()
        return append(address, options, changes, *others, **named)

    monkeypatch.setattr(run_plan, "append_change_set", held_up)
    Warehouse(warehouse.path, spark, on_progress=once(Moment.ROWS_WRITTEN, age_and_vacuum)).refresh()
    assert contents(warehouse) == truth(warehouse)


def test_a_foreign_writer_without_spark(tmp_path: Path, spark: Any) -> None:
    """A commit that says nothing of itself is foreign too."""
    warehouse = make_warehouse(tmp_path / "warehouse", spark, PLAIN)
    change_base(warehouse, 1)
    table = DeltaTable(rows_of(warehouse))
    data = pa.table(
        {"k": [8], "v": [8], "_vk_copy": [1]},
        schema=pa.schema([("k", pa.int32()), ("v", pa.int32()), ("_vk_copy", pa.int32())]),
    )

    def write() -> None:
        write_deltalake(table.table_uri, data, mode="append", commit_properties=CommitProperties())

    with pytest.raises(RefreshFailedError, match="somebody else changed the table of plain"):
        Warehouse(warehouse.path, spark, on_progress=once(Moment.CHANGE_SET_STORED, write)).refresh()
