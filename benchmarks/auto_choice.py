"""What AUTO chooses, against the better of both: `python -m benchmarks.auto_choice`.

Every view exists three times over the same tables, with the policies INCREMENTAL, FULL and AUTO, each with views below
it of its own. After each batch of changes all three are refreshed, INCREMENTAL and AUTO by turns first. AUTO begins with
no past but its creation, and with the batch that warms up.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.measuring import markdown_table, spread
from benchmarks.tpch.changes import OrderChanges
from benchmarks.tpch.data import generated, load
from benchmarks.tpch.queries import view_query
from benchmarks.views import RESULTS, VIEWS, numbers, with_views_below
from viewkeeper import Warehouse

POLICIES = ("INCREMENTAL", "FULL", "AUTO")
ORDERS = (("INCREMENTAL", "AUTO", "FULL"), ("AUTO", "INCREMENTAL", "FULL"))
"""By turns: whichever of the first two comes first opens the tables anew."""
ALLOWED_TIMES, ALLOWED_SECONDS = 1.1, 0.2


@dataclass
class Compared:
    """One view and one number of changed lines, in each repeat."""

    view: str
    changes: int
    seconds: dict[str, list[float]] = field(default_factory=lambda: {policy: [] for policy in POLICIES})
    chosen: list[str] = field(default_factory=list)

    @property
    def row(self) -> list[str]:
        applied, whole, auto = (median(self.seconds[policy]) for policy in POLICIES)
        better = min(applied, whole)
        is_kept = auto <= max(better * ALLOWED_TIMES, better + ALLOWED_SECONDS)
        return [
            self.view,
            f"{self.changes:,}",
            *(spread(self.seconds[policy], digits=2) for policy in POLICIES),
            ", ".join(dict.fromkeys(self.chosen)),
            f"{auto / better:.2f}",
            f"{auto - better:+.2f}",
            "yes" if is_kept else "**no**",
        ]


HEAD = [
    "view", "lines", "incremental s", "full s", "AUTO s", "AUTO chose", "AUTO / better", "AUTO − better, s",
    "within 1.1 or 0.2 s",
]  # fmt: skip


def copy_of(name: str, policy: str, below: Sequence[str]) -> str:
    """The statement that creates a view under one policy, over the views below it under the same."""
    query = view_query(name)
    text = query.create(policy).replace(f"VIEW {name} ", f"VIEW {named(name, policy)} ", 1)
    for each in below:
        text = re.sub(rf"\b{each}\b", named(each, policy), text)
    return text


def named(name: str, policy: str) -> str:
    return f"{name}_{policy.lower()}"


def compared(
    warehouse: Warehouse, scale: float, changes: Sequence[int], views: Sequence[str], repeats: int
) -> list[Compared]:
    data = generated(scale)
    load(warehouse, data)
    for view in views:
        for policy in POLICIES:
            for name in with_views_below(view):
                warehouse.sql(copy_of(name, policy, VIEWS[view]))
    print("all views are created", flush=True)
    found = {(lines, view): Compared(view, lines) for lines in changes for view in views}
    rounds = [(changes[0], -1), *((lines, at) for lines in changes for at in range(repeats))]
    for batch, (lines, repeat) in enumerate(rounds):
        for statement in OrderChanges.of_lines(data, batch + 1, lines).statements():
            warehouse.sql(statement)
        for view in views:
            for policy in ORDERS[batch % 2]:
                began = time.perf_counter()
                report = warehouse.refresh(named(view, policy))
                seconds = time.perf_counter() - began
                if repeat >= 0:
                    found[lines, view].seconds[policy].append(seconds)
                if repeat >= 0 and policy == "AUTO":
                    found[lines, view].chosen.append(report.views[-1].strategy)
        print(f"  {lines:,} lines, {'warmed up' if repeat < 0 else f'repeat {repeat + 1}'}", flush=True)
        if repeat == repeats - 1:
            print(f"\n{markdown_table(HEAD, [found[lines, view].row for view in views])}\n", flush=True)
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor")
    parser.add_argument("--changes", type=numbers, default=[1_000, 1, 10_000, 100_000], help="changed lines")
    parser.add_argument(
        "--views", type=lambda text: text.split(","), default=list(VIEWS), help=", ".join(VIEWS)
    )
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as folder,
        Warehouse(Path(folder) / "warehouse") as warehouse,
    ):
        found = compared(warehouse, options.scale, options.changes, options.views, options.repeat)
    RESULTS.mkdir(exist_ok=True)
    text = markdown_table(HEAD, [each.row for each in found])
    (RESULTS / f"auto_choice_scale_{options.scale:g}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
