"""What each setting of the embedded session is worth: `python -m benchmarks.settings`.

One warm session; each setting is switched to Spark's or Delta's default and back, in turns, so that a busy machine
hits both sides alike. The work is an INSERT of one row and the refresh of two views, one of which is merged by Spark.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from viewkeeper import Warehouse
from viewkeeper.execution.spark_session import OWN_SETTINGS, SMALL_WORK_SETTINGS

DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "10000",
    "spark.databricks.delta.merge.materializeSource": "auto",
}
ROUNDS = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder) / "warehouse")
        warehouse.run_script("""
            CREATE TABLE base (k INT, v INT);
            INSERT INTO base SELECT CAST(id AS INT), CAST(id % 100 AS INT) FROM range(10000);
            CREATE MATERIALIZED VIEW sums AS SELECT v, count(*) AS n, sum(k) AS total FROM base GROUP BY v;
            CREATE MATERIALIZED VIEW mapped AS SELECT v AS `the v`, max(k) AS most FROM base GROUP BY v
        """)
        serial = iter(range(1_000_000))

        def refresh() -> None:
            warehouse.sql(f"INSERT INTO base VALUES ({next(serial)}, 1)")
            warehouse.refresh()

        def vacuum() -> None:
            refresh()
            warehouse.sql("VACUUM WAREHOUSE RETAIN 1 EPOCH")

        for _ in range(8):
            refresh()
        print(f"{'setting':62} {'what':10} {'ours':>8} {'default':>8}")
        for key, default in DEFAULTS.items():
            work: Callable[[], None] = vacuum if "parallelism" in key else refresh
            ours = {**SMALL_WORK_SETTINGS, **OWN_SETTINGS}[key]
            times: dict[str, list[float]] = {ours: [], default: []}
            for _ in range(1 if work is vacuum else ROUNDS):
                for value in (ours, default):
                    for session in (warehouse.spark, warehouse._workspace.sessions.own):
                        session.conf.set(key, value)
                    began = time.perf_counter()
                    work()
                    times[value].append(time.perf_counter() - began)
            for session in (warehouse.spark, warehouse._workspace.sessions.own):
                session.conf.set(key, ours)
            medians = [statistics.median(times[value]) for value in (ours, default)]
            print(f"{key:62} {work.__name__:10} {medians[0]:6.2f} s {medians[1]:6.2f} s", flush=True)
        warehouse.close()


if __name__ == "__main__":
    main()
