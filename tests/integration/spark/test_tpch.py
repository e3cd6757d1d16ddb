"""The 22 queries of TPC-H as materialized views, and a chain of three views, through every kind of change.

DuckDB checks every view after every batch; VERIFY, which takes ten times as long, checks them at the end.

The strategy that each view must report stands in the header of its file in `benchmarks/tpch`; UPDATE_GOLDEN=1 writes
what was reported there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tpch.changes import OrderChanges, dimension_updates, large_orders
from benchmarks.tpch.data import Data, generated, load
from benchmarks.tpch.queries import CHAIN, TPCH, view_query, write_strategy
from tests.support.duckdb_oracle import wrong_views
from viewkeeper import Warehouse
from viewkeeper.execution.create_view import RecomputeWarning
from viewkeeper.execution.reports import RefreshFailedError

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.tpch]

SCALE = 0.01
VIEWS = (*TPCH, *CHAIN)
EXPECTED_STRATEGY: Mapping[str, str] = {name: view_query(name).strategy for name in VIEWS}


@dataclass
class Seen:
    """What the refreshes and checks of one view said, by batch."""

    strategies: dict[str, str] = field(default_factory=dict)
    rows_changed: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def strategy(self) -> str:
        """The one that changes were applied by; several are sorted and joined."""
        return "_".join(sorted(set(self.strategies.values()) - {"none"}))


def batches(data: Data) -> Iterator[tuple[str, list[str]]]:
    yield "new and deleted orders", OrderChanges(data, 1, 300, 300).statements()
    yield "dimensions", dimension_updates(2)
    yield "lines", [*OrderChanges(data, 3, updated_lines=900).statements(), large_orders(3)]
    mixed = OrderChanges(data, 4, 300, 300, 900).statements()
    yield "mixed", [*mixed, *dimension_updates(4), large_orders(4)]


def refresh_and_check(warehouse: Warehouse, batch: str, seen: Mapping[str, Seen]) -> None:
    try:
        report = warehouse.refresh()
    except RefreshFailedError as error:
        report = error.report
    for view in report.views:
        seen[view.name].strategies[batch] = "failed" if view.error else view.strategy
        seen[view.name].rows_changed += view.inserted + view.deleted
        if view.error:
            seen[view.name].problems.append(f"{batch}: {view.error}")
    for name, difference in wrong_views(warehouse).items():
        seen[name].problems.append(f"{batch}: {difference}")


def shown(seen: Mapping[str, Seen]) -> str:
    names = list(next(iter(seen.values())).strategies)
    lines = [" ".join(["view".ljust(14), *(name.ljust(24) for name in names), "rows changed"])]
    for name, each in seen.items():
        cells = [each.strategies.get(batch, "").ljust(24) for batch in names]
        lines.append(" ".join([name.ljust(14), *cells, f"{each.rows_changed:12,}"]))
    return "\n".join(lines)


def test_every_query_of_tpch_is_kept_equal_to_its_view(spark: Any, tmp_path: Path) -> None:
    data, warehouse = generated(SCALE), Warehouse(tmp_path / "warehouse", spark)
    load(warehouse, data)
    for name in VIEWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecomputeWarning)
            warehouse.sql(view_query(name).create())
    seen = {name: Seen() for name in VIEWS}
    for batch, statements in batches(data):
        for statement in statements:
            warehouse.sql(statement)
        refresh_and_check(warehouse, batch, seen)
    for name in VIEWS:
        verified = warehouse.verify(name)
        if not verified.equal:
            seen[name].problems.append(str(verified))
    print(f"\n{shown(seen)}")
    assert {name: each.problems for name, each in seen.items() if each.problems} == {}
    assert [name for name, each in seen.items() if not each.rows_changed] == [], (
        "no batch changes these views"
    )
    if os.environ.get("UPDATE_GOLDEN") == "1":
        for name, each in seen.items():
            write_strategy(name, each.strategy)
    else:
        assert {name: each.strategy for name, each in seen.items()} == EXPECTED_STRATEGY
