"""Predictions follow the change or the tables, as the plan does. Measured figures are in benchmarks/README.md."""

from __future__ import annotations

import pytest

from tests.maintenance.helpers import definition
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_refresh
from viewkeeper.maintenance.cost import MOST_CORRECTION, Sizes, learnt, predicted_seconds, why_recompute
from viewkeeper.maintenance.plan import MaintenancePlan, Strategy

JOIN = "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer_id"
SHAPE = {"id": "INT", "amount": "DECIMAL(10,2)", "name": "STRING"}
TOP = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10"
TOP_SHAPE = {"id": "INT", "amount": "DECIMAL(10,2)"}


def plan(why_not: str | None = None, text: str = JOIN, shape: dict[str, str] = SHAPE) -> MaintenancePlan:
    view = definition(text, shape=shape)
    changed = next(each.object_id for each in view.query.inputs if each.name.name == "orders")
    return plan_refresh(view, {changed: ANY_CHANGE}, why_not)


def sizes(found: MaintenancePlan, rows: int, changed: int, keys: tuple[frozenset[str], ...] = ()) -> Sizes:
    reads = {read.object_id: read for step in found.steps for read in step.reads}
    changes = {each: changed for each, read in reads.items() if read.name.name == "orders"}
    return Sizes(dict.fromkeys(reads, rows), changes, dict.fromkeys(reads, keys))


def seconds(found: MaintenancePlan, rows: int, changed: int, keys: tuple[frozenset[str], ...] = ()) -> float:
    return predicted_seconds(found, sizes(found, rows, changed, keys))


def test_applying_changes_costs_by_the_change() -> None:
    applied = plan()
    assert applied.strategy is Strategy.DIFFERENTIAL
    assert seconds(applied, 1_000_000, 100_000) > 2 * seconds(applied, 1_000_000, 1_000)
    assert seconds(applied, 100_000_000, 2) < 1.1 * seconds(applied, 1_000_000, 2)


def test_recomputing_costs_by_the_tables() -> None:
    whole = plan("it was asked for")
    assert whole.strategy is Strategy.RECOMPUTE
    assert seconds(whole, 10_000_000, 100_000) == seconds(whole, 10_000_000, 1)
    assert seconds(whole, 10_000_000, 1) > 5 * seconds(whole, 1_000_000, 1)


def test_with_little_to_do_applying_changes_is_no_dearer_than_recomputing() -> None:
    assert seconds(plan(), 10, 2) < seconds(plan("it was asked for"), 10, 2) + 0.1


def test_values_of_a_key_find_one_row_each() -> None:
    by_key = (frozenset({"id"}),)
    assert seconds(plan(), 10_000_000, 100_000, by_key) < seconds(plan(), 10_000_000, 100_000)
    many = 400_000  # half as many values: too many rows to find one by one, unless each finds one
    assert seconds(plan(), 10_000_000, many, by_key) + 3 < seconds(plan(), 10_000_000, many)


def test_a_table_that_is_read_only_if_something_is_found_costs_nothing() -> None:
    """The first rows are taken from the table again only if one that is shown went away."""
    rows = sizes(plan(text=TOP, shape=TOP_SHAPE), 100, 10)
    table = next(iter(rows.changed))
    larger = Sizes({**rows.rows, table: 100_000_000}, rows.changed)
    assert predicted_seconds(plan(text=TOP, shape=TOP_SHAPE), larger) < 1


@pytest.mark.parametrize("strategy", ["differential", "recompute"])
def test_corrections_are_bounded_and_settle_on_what_refreshes_take(strategy: str) -> None:
    found: dict[str, float] = {}
    for _ in range(20):
        found = learnt(found, strategy, 1.0, 2.0)
    assert found[strategy] == pytest.approx(2.0, rel=0.01)
    for _ in range(20):
        found = learnt(found, strategy, 1.0, 1_000.0)
    assert found[strategy] == pytest.approx(MOST_CORRECTION, rel=0.01)
    assert learnt(found, strategy, None, 5.0) == found


def test_a_way_that_was_once_slow_is_tried_again() -> None:
    """Were its correction never forgotten, a single slow refresh would be the last by changes. Both ways are predicted to
    take half a second, and recomputing takes that long."""
    found, tried = {"recompute": 1.0, "differential": 30.0}, 0
    while why_recompute(0.5 * found["differential"], 0.5 * found["recompute"], "1") is not None:
        found, tried = learnt(found, "recompute", 0.5, 0.5), tried + 1
    assert 1 <= tried <= 4
