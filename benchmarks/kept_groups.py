"""Groups inside a query, kept as a hidden view or evaluated again: `python -m benchmarks.kept_groups`.

A join with totals by group over a table of some size, once with and once without the hidden view, after the same changes:
updates of scattered rows. Times are medians of warm refreshes of the view, with all that lies below it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.measuring import Cost, cost_of
from viewkeeper import Warehouse
from viewkeeper.maintenance import cost

VIEW = """
CREATE MATERIALIZED VIEW {name} REFRESH INCREMENTAL AS
SELECT r.label, s.total, s.n
FROM label_{groups} r JOIN (SELECT k, sum(x) AS total, count(*) AS n FROM fact_{groups} GROUP BY k) s ON s.k = r.k
"""


def make_tables(warehouse: Warehouse, rows: int, groups: int) -> None:
    warehouse.run_script(f"""
        CREATE TABLE label_{groups} (k INT, label STRING);
        CREATE TABLE fact_{groups} (id BIGINT, k INT, x DECIMAL(12,2), note STRING);
        INSERT INTO label_{groups} SELECT CAST(id AS INT), concat('label ', id) FROM range({groups});
        INSERT INTO fact_{groups}
          SELECT id, CAST(id % {groups} AS INT), CAST(id % 9973 AS DECIMAL(12,2)), concat('note of row ', id) FROM range({rows})
    """)


def make_view(warehouse: Warehouse, groups: int, is_kept: bool) -> None:
    name = f"{'kept' if is_kept else 'again'}_{groups}"
    before, cost.KEPT_SECONDS = cost.KEPT_SECONDS, -1.0 if is_kept else float("inf")
    try:
        warehouse.sql(VIEW.format(name=name, groups=groups))
    finally:
        cost.KEPT_SECONDS = before


def measure(warehouse: Warehouse, rows: int, groups: int, changes: int, repeats: int) -> None:
    found: dict[str, list[Cost]] = {f"kept_{groups}": [], f"again_{groups}": []}
    step = max(1, rows // changes)
    for repeat in range(repeats + 1):
        warehouse.sql(f"UPDATE fact_{groups} SET x = x + 1 WHERE id % {step} = {repeat % step}")
        for name in found:
            _, measured = cost_of(warehouse.spark, lambda name=name: warehouse.refresh(name))
            if repeat:
                found[name].append(measured)
    cells = [
        f"{statistics.median(each.seconds for each in costs):6.2f} s, {costs[-1].jobs:3} jobs, {costs[-1].rows_read:10,} rows read"
        for costs in found.values()
    ]
    print(
        f"{rows:10,} rows, {groups:8,} groups, {changes:6,} changes | kept: {cells[0]} | again: {cells[1]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--groups", type=int, nargs="+", default=[5, 1_000, 20_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[10, 1_000])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for at, rows in enumerate(arguments.rows):
            with Warehouse(Path(folder) / f"{at}") as warehouse:
                for groups in arguments.groups:
                    make_tables(warehouse, rows, groups)
                    for is_kept in (True, False):
                        make_view(warehouse, groups, is_kept)
                    for changes in arguments.changes:
                        measure(warehouse, rows, groups, changes, arguments.repeats)


if __name__ == "__main__":
    main()
