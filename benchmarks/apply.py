"""Ways to apply a change set, side by side: `python -m benchmarks.apply`.

Half of the changed rows are updates, a quarter deletions, a quarter insertions; keys are the newest 1 % or scattered over
the whole view, which joins three tables. Times are medians of warm runs with the least and the greatest; ratios are to
evaluating the join again and writing the whole view.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.measuring import seconds_of, spread
from viewkeeper.execution.apply import (
    FOLDED_WHOLE_ROWS,
    apply_by_overwriting,
    apply_by_own_commit,
    find_positions,
    own_table,
    stored_schema,
)
from viewkeeper.execution.input_changes import schema_text
from viewkeeper.execution.spark_session import OWN_SETTINGS, embedded_session
from viewkeeper.generated_names import CHANGE_KIND
from viewkeeper.maintenance.bag_changes import merge
from viewkeeper.sources.arrow_types import arrow_schema
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple, read_type_text
from viewkeeper.storage.own_commit import Mark

COLUMNS = tuple(
    Column(name, read_type_text(text))
    for name, text in {"id": "BIGINT", "part": "INT", "price": "DECIMAL(12,2)", "note": "STRING"}.items()
)
WITH_KIND = (*stored_schema(COLUMNS), Column(CHANGE_KIND, Simple("STRING")))
TABLES = {
    "line": "SELECT id, id DIV 4 AS head, CAST(id % 9973 AS DECIMAL(12,2)) AS price, concat('note of row ', id) AS note "
    "FROM range({rows})",
    "head": "SELECT id AS head, id % 1000 AS part FROM range({rows} DIV 4 + 1)",
    "part": "SELECT id AS part, CAST(id AS INT) AS number FROM range(1000)",
}
SELECT = (
    "SELECT line.id, part.number AS part, line.price, line.note, 1 AS _vk_copy "
    "FROM line JOIN head ON head.head = line.head JOIN part ON part.part = head.part"
)
_NUMBERS = count(1)
MARK = Mark("v", 1, "m")
PROPERTIES = "'delta.enableDeletionVectors' = 'true'"


def row(key: int, shift: int = 0) -> tuple[Any, ...]:
    return (
        key,
        key // 4 % 1000,
        Decimal(key % 9973 + shift).quantize(Decimal("0.01")),
        f"note of row {key}",
        1,
    )


def change_set(rows: int, count: int, newest: bool) -> pa.Table:
    """Half updates, a quarter deletions, a quarter insertions; one row alone is an update."""
    first = rows - rows // 100 if newest else 0
    step = max(1, (rows - first) // max(1, count))
    changes: list[tuple[Any, ...]] = []
    for number in range(count):
        key = min(first + number * step, rows - 1)
        kind = number % 4
        if kind in (0, 2):
            changes += [(*row(key), "delete"), (*row(key, 1), "insert")]
        elif kind == 1:
            changes.append((*row(key), "delete"))
        else:
            changes.append((*row(rows + number), "insert"))
    schema = arrow_schema(WITH_KIND)
    unique = list(dict.fromkeys(changes))
    return pa.Table.from_arrays(
        [pa.array([each[at] for each in unique], field.type) for at, field in enumerate(schema)],
        schema=schema,
    )


def make_view(spark: Any, address: str, rows: int) -> None:
    """The view in the order of its key, as Viewkeeper loads it, and the tables that it joins."""
    for name, query in TABLES.items():
        path = f"{address}_{name}"
        spark.sql(query.format(rows=rows)).write.format("delta").save(path)
        spark.read.format("delta").load(path).createOrReplaceTempView(name)
    spark.sql(
        f"CREATE OR REPLACE TABLE delta.`{address}` USING delta TBLPROPERTIES ({PROPERTIES}) AS {SELECT} ORDER BY id"
    )


def copy_of(spark: Any, address: str) -> str:
    """The view as it was loaded, at a place of its own; Spark has seen it."""
    copy = f"{address}_copy_{next(_NUMBERS)}"
    shutil.copytree(address, copy, copy_function=os.link)
    spark.read.format("delta").load(copy).limit(1).collect()
    return copy


def by_merge(spark: Any, changes: pa.Table, address: str) -> None:
    spark.createDataFrame(changes, schema_text(WITH_KIND)).createOrReplaceTempView("v_changes")
    sql = merge("v", "v_changes", COLUMNS).replace("INTO `v`", f"INTO delta.`{address}` AS `v`")
    spark.sql(sql).collect()


def by_hand(spark: Any, changes: pa.Table, address: str) -> None:
    """What a user would write who knows the key: one row of changes per key."""
    spark.createDataFrame(changes, schema_text(WITH_KIND)).createOrReplaceTempView("c")
    spark.sql(
        f"MERGE INTO delta.`{address}` AS t USING (SELECT id, max_by(struct(*), _vk_change) AS row FROM c GROUP BY id) s "
        "ON t.id = s.id WHEN MATCHED AND s.row._vk_change = 'delete' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET part = s.row.part, price = s.row.price, note = s.row.note "
        "WHEN NOT MATCHED THEN INSERT (id, part, price, note, _vk_copy) "
        "VALUES (s.id, s.row.part, s.row.price, s.row.note, 1)"
    ).collect()


def by_own_commit(spark: Any, changes: pa.Table, address: str) -> None:
    table = own_table(address, None, COLUMNS)
    assert table is not None
    apply_by_own_commit(table, changes, MARK, "v", partial(find_positions, spark, table))


def by_overwriting(spark: Any, changes: pa.Table, address: str) -> None:
    table = own_table(address, None, COLUMNS)
    assert table is not None
    apply_by_overwriting(table, changes, MARK, "v")


def recompute(spark: Any, address: str) -> None:
    spark.sql(f"INSERT OVERWRITE delta.`{address}` {SELECT}").collect()


WAYS: Mapping[str, Callable[[Any, pa.Table, str], None]] = {
    "own commit": by_own_commit,
    "our MERGE": by_merge,
    "by hand": by_hand,
    "overwrite": by_overwriting,
}


def measured(prepare: Callable[[], str], work: Callable[[str], object], repeats: int) -> list[float]:
    """Milliseconds of each run but the first, which warms up."""
    times = []
    for _ in range(repeats + 1):
        address = prepare()
        times.append(seconds_of(partial(work, address)) * 1000)
        shutil.rmtree(address)
    return times[1:]


def line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--views", type=int, nargs="+", default=[60_000, 600_000, 6_000_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[1, 1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--beside", nargs="+", choices=WAYS, default=list(WAYS), help="ways to measure beside the own commit"
    )
    options = parser.parse_args()
    spark = embedded_session()
    for key, value in OWN_SETTINGS.items():
        spark.conf.set(key, value)
    print(line("view rows", "changed", "keys", *WAYS, "recompute", "recompute / own commit"))
    print(line(*["---"] * (5 + len(WAYS))))
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.views:
            address = str(Path(folder) / f"v{rows}")
            make_view(spark, address, rows)
            prepare = partial(copy_of, spark, address)
            whole = measured(prepare, partial(recompute, spark), options.repeats)
            for changed, newest in product(options.changes, (True, False)):
                changes = change_set(rows, changed, newest)
                times = {
                    name: measured(prepare, partial(way, spark, changes), options.repeats)
                    for name, way in WAYS.items()
                    if name in {"own commit", *options.beside}
                    and (way is not by_overwriting or rows <= FOLDED_WHOLE_ROWS)
                }
                shown = [spread(times[name], digits=0) if name in times else "" for name in WAYS]
                gain = statistics.median(whole) / statistics.median(times["own commit"])
                where = "newest" if newest else "scattered"
                print(
                    line(f"{rows:,}", f"{changed:,}", where, *shown, spread(whole, digits=0), f"{gain:.1f}"),
                    flush=True,
                )
    spark.stop()


if __name__ == "__main__":
    main()
