"""Up to which size change feeds are read in the driver: `python -m benchmarks.feed_readers`.

The net changes of a table of which some rows were updated, read by both readers until both parts are relations that Spark has
counted: delta-rs with the net effect worked out in this process, and Spark. Their sizes are those of the feed's files.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.apply import line
from benchmarks.measuring import seconds_of, spread
from viewkeeper import Warehouse
from viewkeeper.execution.input_changes import EpochChanges
from viewkeeper.maintenance.plan import State
from viewkeeper.sources import change_feed

ROWS = """
INSERT INTO sale SELECT CAST(id AS INT), id % 15000, CAST(id % 7 AS INT), CAST(id * 7 % 100000 / 100 AS DECIMAL(15,2)),
  date_add(DATE '2020-01-01', CAST(id % 2000 AS INT)), concat('note ', id) FROM range({rows})
"""
TABLE = """
CREATE TABLE sale (id INT PRIMARY KEY, customer BIGINT, quantity INT, price DECIMAL(15,2), day DATE, note STRING)
"""
SIZES = {"driver": 2**40, "spark": 0}
"""The largest feed that each reader leaves to the driver."""


class Feed:
    """The changes of the table from one version to its newest."""

    def __init__(self, warehouse: Warehouse, consumed: int) -> None:
        self.workspace = warehouse._workspace
        self.catalogue = self.workspace.state.read()
        (self.table,) = self.catalogue.tables.values()
        self.consumed = consumed
        self.version = self.workspace.versions_of([self.table.id], self.catalogue)[self.table.id]
        folder = Path(self.workspace.data_address(self.table)) / "_change_data"
        self.bytes = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        """Of all feeds of the table until now."""

    def read(self, reader: str) -> None:
        change_feed.DRIVER_BYTES = SIZES[reader]
        changes = EpochChanges(self.workspace, self.catalogue)
        found = changes.of(self.table.id, self.consumed, self.version, ("id",))
        for state in (State.REMOVED, State.ADDED):
            found.frame(self.workspace.sessions.own, state).count()
        changes.close()


def measured(warehouse: Warehouse, rows: int, changed: int, repeats: int) -> Sequence[str]:
    before = Feed(warehouse, 0)
    warehouse.sql(f"UPDATE sale SET quantity = quantity + 1 WHERE id % {rows // changed} = 0")
    feed = Feed(warehouse, before.version)
    megabytes = (feed.bytes - before.bytes) / 1024**2
    times = {reader: [seconds_of(partial(feed.read, reader)) for _ in range(repeats + 1)] for reader in SIZES}
    return [f"{changed:,}", f"{megabytes:.1f}", *(spread(each[1:], 2) for each in times.values())]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--changes", type=int, nargs="+", default=[100, 1_000, 10_000, 50_000, 100_000, 500_000]
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Warehouse(Path(folder) / "warehouse") as warehouse:
        warehouse.sql(TABLE)
        warehouse.sql(ROWS.format(rows=options.rows))
        print(line("updated rows", "megabytes", "in the driver", "by Spark (seconds)"))
        print(line(*["---"] * 4))
        for changed in options.changes:
            print(line(*measured(warehouse, options.rows, changed, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
