"""Views over the same join, refreshed together, that share what they look up or do not: `python -m benchmarks.shared_reads`.

All views join a large table with two others and show other columns of them; after every change of scattered rows of the large
one, all are refreshed at once. Times are medians of warm refreshes, by turns with and without sharing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.measuring import Cost, cost_of
from viewkeeper import Warehouse
from viewkeeper.execution import epoch_reads
from viewkeeper.execution.epoch_reads import EpochReads
from viewkeeper.execution.input_changes import InputChanges
from viewkeeper.storage.records import ViewRecord

VIEW = """
CREATE MATERIALIZED VIEW shown_{number} REFRESH INCREMENTAL AS
SELECT l.id, l.amount + {number} AS amount, o.note_{column} AS of_order, {since} AS since, p.label_{column} AS of_part
FROM line l JOIN orders o ON l.order_id = o.id JOIN part p ON l.part_id = p.id
"""


def make_tables(warehouse: Warehouse, rows: int) -> None:
    warehouse.run_script(f"""
        CREATE TABLE orders (id INT PRIMARY KEY RELY, note_0 STRING, note_1 STRING, since TIMESTAMP);
        CREATE TABLE part (id INT PRIMARY KEY RELY, label_0 STRING, label_1 STRING);
        CREATE TABLE line (id INT PRIMARY KEY RELY, order_id INT, part_id INT, amount DECIMAL(12,2));
        INSERT INTO orders SELECT CAST(id AS INT), md5(string(id)), md5(string(id + 1)), now() FROM range({rows // 2});
        INSERT INTO part SELECT CAST(id AS INT), md5(string(id)), md5(string(id + 1)) FROM range({rows // 4});
        INSERT INTO line SELECT CAST(id AS INT), CAST(id * 7919 % {rows // 2} AS INT), CAST(id * 104729 % {rows // 4} AS INT), 1
          FROM range({rows})
    """)


@contextmanager
def nothing_shared() -> Iterator[None]:
    """Every view starts with nothing, and looks for what it needs itself."""
    kept = EpochReads.begin, InputChanges.frame

    def begin(self: EpochReads, view: ViewRecord) -> None:
        self.views, self._later, self._found, self._files = (), (), [], {}
        kept[0](self, view)

    def frame(self: InputChanges, session: Any, state: Any) -> Any:
        self._frames.clear()
        return kept[1](self, session, state)

    EpochReads.begin, InputChanges.frame = begin, frame  # type: ignore[method-assign]
    try:
        yield
    finally:
        EpochReads.begin, InputChanges.frame = kept  # type: ignore[method-assign]


@contextmanager
def searches() -> Iterator[list[float]]:
    """The seconds that each search in files takes."""
    seconds: list[float] = []
    search = epoch_reads.few_rows

    def measured(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return search(*arguments)
        finally:
            seconds.append(time.perf_counter() - began)

    epoch_reads.few_rows = measured
    try:
        yield seconds
    finally:
        epoch_reads.few_rows = search


def processor_seconds(spark: Any) -> float:
    """What this process and its JVM have used so far (Linux): other work on the machine does not count."""
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    used = 0.0
    for process in ("self", java):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def measure(warehouse: Warehouse, rows: int, views: int, changes: int, repeats: int) -> None:
    found: dict[bool, list[tuple[Cost, float, list[float]]]] = {True: [], False: []}
    step = max(1, rows // changes)
    for repeat in range(2 * (repeats + 1)):
        is_shared = repeat % 2 == 0
        warehouse.sql(f"UPDATE line SET amount = amount + 1 WHERE id % {step} = {repeat % step}")
        with searches() as made, nullcontext() if is_shared else nothing_shared():
            before = processor_seconds(warehouse.spark)
            report, cost = cost_of(warehouse.spark, warehouse.refresh)
            used = processor_seconds(warehouse.spark) - before
        assert len(report.views) == views and all(view.inserted for view in report.views)
        if repeat > 1:
            found[is_shared].append((cost, used, made))
    cells = [
        f"{statistics.median(cost.seconds for cost, _, _ in each):6.2f} s, {statistics.median(used for _, used, _ in each):6.2f} s of "
        f"processors, {len(each[-1][2]):2} searches of {statistics.median(sum(made) for _, _, made in each):5.2f} s together"
        for each in found.values()
    ]
    print(
        f"{rows:10,} rows, {views:2} views, {changes:6,} changes | shared: {cells[0]} | each for itself: {cells[1]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--views", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--by-spark",
        action="store_true",
        help="show a timestamp: then Spark searches the orders, and not Arrow",
    )
    arguments = parser.parse_args()
    since = "o.since" if arguments.by_spark else "1"
    with tempfile.TemporaryDirectory() as folder:
        for rows in arguments.rows:
            with Warehouse(Path(folder) / f"{rows}") as warehouse:
                make_tables(warehouse, rows)
                made = 0
                for views in sorted(arguments.views):
                    for number in range(made, views):
                        warehouse.sql(VIEW.format(number=number, column=number % 2, since=since))
                    made = views
                    measure(warehouse, rows, views, arguments.changes, arguments.repeats)


if __name__ == "__main__":
    main()
