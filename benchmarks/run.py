"""The figures of the foundation: `make bench`. Those of views over TPC-H: `python -m benchmarks.views`.

Start of a session, a refresh with nothing to do, what needs no JVM, and a refresh by recomputation beside the
bare computation of the same query. Ratios in one run; medians with their spread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import seconds_of, spread
from viewkeeper import Warehouse
from viewkeeper.cli.demo import SCHEMA, VIEWS, changes_of_round, generated_data


def measured(work: Callable[[], object], repeats: int) -> str:
    return f"{spread([seconds_of(work) for _ in range(repeats)])} s, {repeats} runs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warehouse"
        warehouse = Warehouse(path)
        print(f"start of an embedded session    {seconds_of(lambda: warehouse.spark):.3f} s", flush=True)
        warehouse.run_script(SCHEMA)
        warehouse.run_script(generated_data(options.lines))
        warehouse.run_script(VIEWS)
        refreshes: list[float] = []
        for number in range(options.rounds):
            for _, statements in changes_of_round(number, options.lines):
                warehouse.run_script(statements)
            refreshes.append(warehouse.refresh().seconds)
        query = VIEWS.split(" AS\n", 1)[1].split(";")[0]
        print(
            f"refresh of the demo's two views {spread(refreshes)} s, {len(refreshes)} runs, "
            f"{options.lines:,} lines"
        )
        print(f"only computing the lower query  {measured(lambda: warehouse.sql(query).count(), 5)}")
        print(f"refresh with nothing to do      {measured(warehouse.refresh, 10)}")
        print(f"SHOW MATERIALIZED VIEWS         {measured(warehouse.views, 10)}")
        command = [sys.executable, "-m", "viewkeeper.cli.app", "status", "-w", str(path)]
        status = measured(lambda: subprocess.run(command, check=True, capture_output=True), 5)
        print(f"viewkeeper status, a process    {status}")
        warehouse.close()


if __name__ == "__main__":
    main()
