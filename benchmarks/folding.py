"""When small files of a view are worth folding: `python -m benchmarks.folding`.

Every own commit leaves a small file behind. For growing numbers of them: how long it takes to look up a thousand rows, to read
the view whole through Delta, and to fold the files. If a file costs c more in every refresh and folding costs F, then folding after
n refreshes costs (n c / 2 + F / n) a refresh, which is least at n = √(2 F / c).
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.apply import COLUMNS, by_own_commit, change_set, copy_of, line, make_view, measured
from benchmarks.measuring import spread
from viewkeeper.execution.apply import OwnTable, find_positions, fold, own_table
from viewkeeper.execution.spark_session import OWN_SETTINGS, embedded_session
from viewkeeper.generated_names import CHANGE_KIND

CHANGES = 1_000


def the_table(address: str) -> OwnTable:
    table = own_table(address, None, COLUMNS)
    assert table is not None
    return table


def of_kind(kind: str, changes: pa.Table) -> pa.Table:
    return changes.filter(pc.equal(changes.column(CHANGE_KIND), kind))


def read_whole(spark: Any, address: str) -> None:
    spark.read.format("delta").load(address).selectExpr("sum(price)", "max(note)").collect()


def look_up(spark: Any, going: pa.Table, address: str) -> None:
    find_positions(spark, the_table(address), going)


def fold_files(spark: Any, address: str) -> None:
    fold(spark, the_table(address), "v", "m")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[0, 8, 16, 32, 64])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    spark = embedded_session()
    for key, value in OWN_SETTINGS.items():
        spark.conf.set(key, value)
    print(line("small files", "look up 1,000 rows", "read whole", "fold (milliseconds)"))
    print(line("---", "---", "---", "---"))
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "v")
        make_view(spark, address, options.rows)
        first = len(the_table(address).files.adds)
        changes = change_set(options.rows, CHANGES, newest=False)
        going, coming = of_kind("delete", changes).drop([CHANGE_KIND]), of_kind("insert", changes)
        times: dict[int, list[list[float]]] = {}
        for files in options.files:
            while len(the_table(address).files.adds) < first + files:
                by_own_commit(spark, coming, address)
            works = (partial(look_up, spark, going), partial(read_whole, spark), partial(fold_files, spark))
            prepare = partial(copy_of, spark, address)
            times[files] = [
                measured(prepare, work, options.repeats) if files or work is not works[-1] else []
                for work in works
            ]
            shown = [spread(each, digits=0) if each else "" for each in times[files]]
            print(line(files, *shown), flush=True)
    spark.stop()
    for at, what in enumerate(("looking up", "reading whole")):
        print(f"by {what}: fold after {_best(times, at):.0f} refreshes")


def _best(times: dict[int, list[list[float]]], at: int) -> float:
    """√(2 F / c) from the least and the greatest number of files."""
    least, most = min(times), max(times)
    each = (statistics.median(times[most][at]) - statistics.median(times[least][at])) / (most - least)
    return math.sqrt(2 * statistics.median(times[most][2]) / max(each, 0.01))


if __name__ == "__main__":
    main()
