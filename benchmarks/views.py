"""Refreshing against recomputing and against a hand-written job, over TPC-H: `python -m benchmarks.views`.

After each batch of changes every view is brought up to date in four ways, each into tables of its own:

- *refresh*: REFRESH MATERIALIZED VIEW, with the views below it;
- *by hand*: `benchmarks.hand_written`, change feed and MERGE on plain Delta tables with deletion vectors;
- *recompute*: the query by plain Spark, overwriting a plain Delta table;
- *full*: REFRESH MATERIALIZED VIEW … FULL, which also finds out what changed (here nothing, after the refresh).

The last two hardly depend on the changes and are measured with the first number of them only.

One session, warm; the order of the ways is turned round in every other repeat. At the end refresh and by hand must
hold the rows of the query.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from deltalake import DeltaTable

from benchmarks.hand_written import hand_written_job
from benchmarks.measuring import Cost, cost_of, markdown_table, spread
from benchmarks.tpch.changes import OrderChanges
from benchmarks.tpch.data import Data, generated, load
from benchmarks.tpch.queries import CHAIN, view_query
from viewkeeper import Warehouse

VIEWS: Mapping[str, tuple[str, ...]] = {
    "three_way_join": (),
    "sum_by_customer": (),
    "sum_by_priority": (),
    "left_join": (),
    "full_join": (),
    "not_exists": (),
    "distinct_pairs": (),
    "union_all": (),
    "count_distinct": (),
    "min_max": (),
    "top_lines": (),
    "chain_top": CHAIN[:-1],
}
"""Each with the views below it, lowest first."""

REFRESH, BY_HAND, RECOMPUTE, FULL = WAYS = ("refresh", "by hand", "recompute", "full")
FIGURES = ("jobs", "rows_read", "rows_written")
RESULTS = Path(__file__).with_name("results")


@dataclass
class Measurement:
    """One view and one number of changed lines: what each way cost in each repeat."""

    scale: float
    view: str
    changes: int
    costs: dict[str, list[Cost]] = field(default_factory=lambda: {way: [] for way in WAYS})
    reports: list[Any] = field(default_factory=list)

    def seconds(self, way: str) -> list[float]:
        return [cost.seconds for cost in self.costs[way]]

    def typical(self, way: str, figure: str) -> float:
        return median(getattr(cost, figure) for cost in self.costs[way])

    def times_as_long(self, way: str) -> float:
        """How many times the refresh another way takes."""
        return self.typical(way, "seconds") / self.typical(REFRESH, "seconds")

    @property
    def strategy(self) -> str:
        return ", ".join(sorted({report.views[-1].strategy for report in self.reports}))

    @property
    def steps(self) -> dict[str, float]:
        """Median seconds of each kind of step, as the reports have them; `other` lies between the steps."""
        found: dict[str, list[float]] = {}
        for report in self.reports:
            taken: dict[str, float] = {"other": report.seconds}
            for view in report.views:
                for title, seconds in view.steps:
                    step = f"{view.name}: {title.partition(':')[0]}"
                    taken[step] = taken.get(step, 0) + seconds
                    taken["other"] -= seconds
            for step, seconds in taken.items():
                found.setdefault(step, []).append(seconds)
        return {step: round(median(seconds), 3) for step, seconds in found.items()}

    @property
    def rows_changed(self) -> float:
        """Rows that a refresh inserted and deleted, in the view and those below."""
        return median(sum(view.inserted + view.deleted for view in report.views) for report in self.reports)

    def to_json(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "view": self.view,
            "changes": self.changes,
            "strategy": self.strategy,
            **{way: [asdict(cost) for cost in costs] for way, costs in self.costs.items()},
            "rows changed": self.rows_changed,
            "steps": self.steps,
            "reports": [report.to_json() for report in self.reports],
        }


@dataclass(frozen=True)
class Asked:
    """What is to be measured."""

    changes: Sequence[int]
    views: Sequence[str]
    repeats: int
    policy: str
    only_newest: bool


class Bench:
    """A warehouse of one scale with views, and tables for the other two ways beside it."""

    def __init__(self, folder: Path, data: Data, asked: Asked) -> None:
        self.folder, self.data, self.asked, self.batches = folder, data, asked, 0
        self.warehouse = Warehouse(folder / "warehouse")
        self.spark = self.warehouse.spark
        load(self.warehouse, data)
        catalogue, workspace = self.warehouse._workspace.state.read(), self.warehouse._workspace
        self.addresses = {t.name.name: workspace.data_address(t) for t in catalogue.tables.values()}
        for table, address in self.addresses.items():
            self.spark.read.format("delta").load(address).createOrReplaceTempView(table)
        for view in asked.views:
            for name in with_views_below(view):
                self.warehouse.sql(view_query(name).create(asked.policy))
            for way in (BY_HAND, RECOMPUTE):
                self._overwrite(way, view)

    def change(self, lines: int) -> dict[str, int]:
        """Change about so many lines; returns the version of each base table before."""
        before, self.batches = self._versions(), self.batches + 1
        changes = OrderChanges.of_lines(self.data, self.batches, lines, self.asked.only_newest)
        for statement in changes.statements():
            self.warehouse.sql(statement)
        return before

    def bring_up_to_date(self, way: str, view: str, before: Mapping[str, int]) -> tuple[Any, Cost]:
        if way == REFRESH:
            return cost_of(self.spark, lambda: self.warehouse.refresh(view))
        if way == FULL:
            names = ", ".join(with_views_below(view))
            return cost_of(self.spark, lambda: self.warehouse.sql(f"REFRESH MATERIALIZED VIEW {names} FULL"))
        if way == BY_HAND:
            after = self._versions()
            return cost_of(self.spark, lambda: self._by_hand(view, before, after))
        return cost_of(self.spark, lambda: self._overwrite(way, view))

    def check(self, view: str) -> None:
        """Refresh and by hand hold what the query gives over the tables as they are."""
        self._overwrite(RECOMPUTE, view)
        expected = self._fingerprint(self._table(RECOMPUTE, view))
        self.warehouse.sql(f"SELECT * FROM {view}").createOrReplaceTempView("refreshed")
        assert self._fingerprint("refreshed") == expected, f"{view}: the refresh is wrong"
        assert self._fingerprint(self._table(BY_HAND, view)) == expected, (
            f"{view}: the hand-written job is wrong"
        )

    def _by_hand(self, view: str, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        feeds = [
            self._feed(table, name, before[table] + 1, after[table])
            for table, name in (("lineitem", "lines_feed"), ("orders", "orders_feed"))
        ]
        tables = {name: self._table(BY_HAND, name) for name in with_views_below(view)}
        hand_written_job(view)(self.spark, tables)
        for feed in feeds:
            feed.unpersist()

    def _feed(self, table: str, name: str, first: int, last: int) -> Any:
        """A change feed as a temporary view with a sign, kept because jobs read it more than once."""
        if first > last:
            feed = self.spark.table(table).selectExpr("*", "'insert' AS _change_type").limit(0)
        else:
            options = {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)}
            feed = self.spark.read.format("delta").options(**options).load(self.addresses[table])
        sign = "IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS sign"
        kept = feed.selectExpr("*", sign).persist()
        kept.createOrReplaceTempView(name)
        return kept

    def _overwrite(self, way: str, view: str) -> None:
        """Write the view and those below it anew, each read from there by the next."""
        for name in with_views_below(view):
            path = str(self._path(way, name))
            frame = self.spark.sql(view_query(name).sql)
            writer = frame.write.format("delta").mode("overwrite")
            writer.option("delta.enableDeletionVectors", "true").save(path)
            if name != view:
                self.spark.read.format("delta").load(path).createOrReplaceTempView(name)

    def _fingerprint(self, relation: str) -> tuple[Any, ...]:
        """The number of rows and the sum of their hashes."""
        columns = ", ".join(self.spark.table(relation).columns)
        hashes = f"sum(CAST(xxhash64({columns}) AS DECIMAL(38,0)))"
        return tuple(self.spark.sql(f"SELECT count(*), {hashes} FROM {relation}").collect()[0])

    def _path(self, way: str, name: str) -> Path:
        return self.folder / way.replace(" ", "_") / name

    def _table(self, way: str, name: str) -> str:
        return f"delta.`{self._path(way, name)}`"

    def _versions(self) -> dict[str, int]:
        return {table: DeltaTable(address).version() for table, address in self.addresses.items()}


def with_views_below(view: str) -> tuple[str, ...]:
    return (*VIEWS[view], view)


def measured(scale: float, asked: Asked) -> list[Measurement]:
    """All figures of one scale. The first batch only warms up."""
    changes, views, repeats = asked.changes, asked.views, asked.repeats
    found = {(view, lines): Measurement(scale, view, lines) for lines in changes for view in views}
    with tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as folder:
        bench = Bench(Path(folder), generated(scale), asked)
        print(f"scale {scale:g} is loaded", flush=True)
        for lines, repeat in [(changes[0], -1), *((lines, at) for lines in changes for at in range(repeats))]:
            before = bench.change(lines)
            ways = WAYS if lines == changes[0] else WAYS[:2]
            for view in views:
                for way in ways if repeat % 2 else (*ways[2::-1], *ways[3:]):
                    result, cost = bench.bring_up_to_date(way, view, before)
                    if repeat >= 0:
                        found[view, lines].costs[way].append(cost)
                    if repeat >= 0 and way == REFRESH:
                        found[view, lines].reports.append(result)
            print(f"  {lines:,} lines, {'warmed up' if repeat < 0 else f'repeat {repeat + 1}'}", flush=True)
            if repeat == repeats - 1:  # Whatever fails later, these figures are known.
                for view in views:
                    for way in WAYS[2:]:
                        found[view, lines].costs[way] = found[view, changes[0]].costs[way]
                print(f"\n{markdown([found[view, lines] for view in views])}\n", flush=True)
        for view in views:
            bench.check(view)
        bench.warehouse.close()
    return list(found.values())


def markdown(measurements: Sequence[Measurement]) -> str:
    """Seconds are medians with the least and the greatest. The rest are medians, of the ways in their order."""
    head = [
        "scale", "view", "lines", "strategy", *(f"{way} s" for way in WAYS), "recompute / refresh",
        "by hand / refresh", "rows changed", "jobs", "rows read", "rows written", "longest step of the refresh",
    ]  # fmt: skip
    rows = []
    for each in measurements:
        longest = max(each.steps.items(), key=lambda step: step[1])
        rows.append(
            [f"{each.scale:g}", each.view, f"{each.changes:,}", each.strategy]
            + [spread(each.seconds(way), digits=2) for way in WAYS]
            + [f"{each.times_as_long(way):.1f}" for way in (RECOMPUTE, BY_HAND)]
            + [f"{each.rows_changed:,.0f}"]
            + [" / ".join(f"{each.typical(way, figure):,.0f}" for way in WAYS) for figure in FIGURES]
            + [f"{longest[0]}, {longest[1]:.2f} s"]
        )
    return markdown_table(head, rows)


def growth(measurements: Sequence[Measurement]) -> str:
    """How each way's time grows from the smallest scale to the largest, for the same number of changes."""
    least, most = min(m.scale for m in measurements), max(m.scale for m in measurements)
    small = {(m.view, m.changes): m for m in measurements if m.scale == least}
    rows = []
    for each in (m for m in measurements if m.scale == most):
        other = small[each.view, each.changes]
        times = [each.typical(way, "seconds") / other.typical(way, "seconds") for way in WAYS]
        rows.append([each.view, f"{each.changes:,}", *(f"{factor:.1f}" for factor in times)])
    return markdown_table(["view", "lines", *(f"{way} at {most:g} / at {least:g}" for way in WAYS)], rows)


def numbers(text: str) -> list[int]:
    return [int(part.replace("_", "")) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scale", "--scales", dest="scales", default="1", help="TPC-H scale factors, such as 0.1,1"
    )
    parser.add_argument("--changes", type=numbers, default=[1, 1_000, 10_000, 100_000], help="changed lines")
    parser.add_argument(
        "--views", type=lambda text: text.split(","), default=list(VIEWS), help=", ".join(VIEWS)
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policy", default="INCREMENTAL", help="AUTO may recompute where that is cheaper")
    parser.add_argument(
        "--keys",
        choices=("scattered", "newest"),
        default="scattered",
        help="among which orders changes happen",
    )
    options = parser.parse_args()
    scales = [float(scale) for scale in options.scales.split(",")]
    asked = Asked(
        options.changes, options.views, options.repeat, options.policy, only_newest=options.keys == "newest"
    )
    found = [measurement for scale in scales for measurement in measured(scale, asked)]
    text = markdown(found)
    if len(scales) > 1:
        text += "\n\n" + growth(found)
    print(f"\n{text}")
    machine = {
        "processors": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    RESULTS.mkdir(exist_ok=True)
    name = f"views_scale_{'_'.join(f'{scale:g}' for scale in scales)}_{options.keys}_{options.policy.lower()}"
    (RESULTS / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    figures = {"machine": machine, "measurements": [each.to_json() for each in found]}
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
