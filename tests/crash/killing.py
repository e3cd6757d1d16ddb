"""Refreshes that are killed: a real process, a real SIGKILL, then a look at what is left.

A killed client of a warm Connect server is the common case; the server goes on with what it was doing. A
killed embedded client takes its JVM along.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import viewkeeper
from viewkeeper import Warehouse
from viewkeeper.execution import apply
from viewkeeper.execution.progress import Event, Moment
from viewkeeper.maintenance import cost

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["viewkeeper", "pyspark.sql.connect.session", "tests.crash.killing"])

_PACKAGE = str(Path(viewkeeper.__file__).parent)

PLAIN = "CREATE MATERIALIZED VIEW plain AS SELECT k, v FROM base"
MAPPED = "CREATE MATERIALIZED VIEW mapped AS SELECT k AS `the k`, v FROM base"
CHAIN = """
CREATE MATERIALIZED VIEW low AS SELECT k, v FROM base WHERE v > 0;
CREATE MATERIALIZED VIEW high AS SELECT k % 2 AS parity, sum(v) AS total, count(*) AS n FROM low GROUP BY k % 2
"""
KEPT = """
CREATE MATERIALIZED VIEW kept AS
SELECT b.k, b.v, s.total FROM base b JOIN (SELECT k, sum(v) AS total FROM base GROUP BY k) s ON s.k = b.k
"""
"""Its groups are kept in a hidden view, where every hidden view pays."""


@dataclass(frozen=True)
class Kill:
    """When a client dies: at the n-th occurrence of a named moment, or at the n-th call of a function of ours, or so many
    seconds after that call, if it still lives then; else never."""

    moment: Moment | None = None
    occurrence: int = 1
    calls: int | None = None
    seconds_later: float = 0.0
    statement: str = "REFRESH ALL"
    overwritten_rows: int | None = None
    """Views with more rows than this are not written whole; None leaves it as it is."""
    keeps_groups: bool = False
    """Every hidden view pays."""

    def __str__(self) -> str:
        if self.moment is not None:
            return f"{self.moment.name} {self.occurrence}"
        if self.calls is None:
            return "never"
        return f"at call {self.calls}" + (f" and {self.seconds_later:.2f} s" if self.seconds_later else "")

    @property
    def is_certain(self) -> bool:
        """Whether the client dies however fast it is."""
        return not self.seconds_later


def make_warehouse(path: Path, spark: Any, views: str) -> Warehouse:
    warehouse = Warehouse(path, spark)
    warehouse.run_script(f"""
        CREATE TABLE base (k INT, v INT);
        INSERT INTO base VALUES (1, 1), (1, 1), (2, 5), (NULL, 3);
        {views}
    """)
    return warehouse


def change_base(warehouse: Warehouse, seed: int) -> None:
    """A change that touches every view: new rows, a duplicate more. Written by delta-rs, as any writer may."""
    catalogue = warehouse._workspace.state.read()
    table = next(table for table in catalogue.tables.values() if table.name.name == "base")
    rows = {"k": [seed % 7, 1, None], "v": [seed % 11 + 1, 1, seed % 3]}
    data = pa.table(rows, schema=pa.schema([("k", pa.int32()), ("v", pa.int32())]))
    write_deltalake(warehouse._workspace.data_address(table), data, mode="append")


def _rows(address: str, columns: str, version: int | None = None) -> list[tuple[Any, ...]]:
    table = DeltaTable(address, version=version)
    found = pa.table(QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t"))
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


def contents(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """What a reader sees now, at the published versions, read by delta-rs."""
    catalogue = warehouse._workspace.state.read()
    return {
        str(view.name): _rows(
            warehouse._workspace.data_address(view),
            ", ".join(f'"{column.name}"' for column in view.columns),
            catalogue.published[view.id].version,
        )
        for view in catalogue.users_views()
    }


def truth(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """What the views of the scripts above should hold over the newest rows."""
    catalogue = warehouse._workspace.state.read()
    table = next(table for table in catalogue.tables.values() if table.name.name == "base")
    base = _rows(warehouse._workspace.data_address(table), "k, v")
    low = [row for row in base if row[1] is not None and row[1] > 0]
    groups: dict[Any, list[int]] = {}
    for k, v in low:
        groups.setdefault(None if k is None else k % 2, []).append(v)
    high = [(parity, sum(values), len(values)) for parity, values in groups.items()]
    totals = {k: sum(v for other, v in base if other == k) for k, _ in base}
    kept = [(k, v, totals[k]) for k, v in base if k is not None]
    expected = {"plain": base, "mapped": base, "low": low, "high": high, "kept": kept}
    return {name: sorted(expected[name], key=repr) for name in warehouse.view_names()}


def _die() -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def _die_refreshing(path: str, spark: str | None, kill: Kill, calls: Any) -> None:
    """`calls` tells how many functions of ours were called."""
    seen = 0

    def listen(event: Event) -> None:
        nonlocal seen
        if event.moment is kill.moment:
            seen += 1
            if seen == kill.occurrence:
                _die()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            calls.value += 1
            if calls.value == kill.calls:
                _die() if kill.is_certain else threading.Timer(kill.seconds_later, _die).start()

    os.setpgid(0, 0)
    if spark is None:  # a JVM that is killed after seconds need not compile well
        os.environ["JDK_JAVA_OPTIONS"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    if kill.overwritten_rows is not None:
        apply.OVERWRITE_ROWS = kill.overwritten_rows
    if kill.keeps_groups:
        cost.KEPT_SECONDS = -1.0
    sys.setprofile(count)
    Warehouse(path, spark, on_progress=listen).sql(kill.statement)
    sys.setprofile(None)
    os._exit(0)  # a timer that has not come yet is left behind


def run_and_kill(path: Path, spark: str | None, kill: Kill, calls: Any = None) -> bool:
    """Run a refresh in a process of its own until it is killed; False if it finished before."""
    calls = _PROCESSES.Value("q", 0, lock=False) if calls is None else calls
    process = _PROCESSES.Process(target=_die_refreshing, args=(str(path), spark, kill, calls))
    process.start()
    process.join(600)
    assert not process.is_alive(), f"the client neither finished nor died: {kill}"
    assert process.exitcode in (0, -signal.SIGKILL), f"exit code {process.exitcode}: {kill}"
    return process.exitcode == -signal.SIGKILL


def assert_wholly_old_or_new(
    seen: dict[str, list[tuple[Any, ...]]],
    old: dict[str, list[tuple[Any, ...]]],
    new: dict[str, list[tuple[Any, ...]]],
    kill: Kill,
) -> None:
    assert seen in (old, new), f"killed {kill}: readers see neither the old nor the new epoch"


def assert_survives(warehouse: Warehouse, path: Path, spark: str | None, kill: Kill, seed: int) -> bool:
    """Change, refresh, kill; then readers see one whole epoch, and the next refresh brings the truth."""
    old = contents(warehouse)
    change_base(warehouse, seed)
    new = truth(warehouse)
    died = run_and_kill(path, spark, kill)
    assert_wholly_old_or_new(contents(warehouse), old, new, kill)
    warehouse.refresh()
    assert contents(warehouse) == new, f"killed {kill}: wrong after the next refresh"
    assert not warehouse.unfinished().rows
    return died


def undisturbed_calls(warehouse: Warehouse, path: Path, spark: str | None) -> int:
    """How many functions of ours a refresh calls that nobody kills: where random kills must lie."""
    change_base(warehouse, seed=0)
    calls = _PROCESSES.Value("q", 0, lock=False)
    assert not run_and_kill(path, spark, Kill(), calls)
    assert contents(warehouse) == truth(warehouse)
    return int(calls.value)


def random_kill(generator: random.Random, calls: int) -> Kill:
    """A kill at one of the calls of a refresh, or a moment later, when the server may be at work. A refresh may make a few
    calls fewer than the one that was counted."""
    later = generator.choice([0.0, 0.0, generator.uniform(0.0, 0.3)])
    return Kill(calls=generator.randint(1, calls * 9 // 10), seconds_later=later)
