"""Agreement with an oracle: plans for random views and random changes, run on DuckDB, give the query's bag.

VIEWKEEPER_FUZZ_CASES and VIEWKEEPER_FUZZ_SEED say how many and which, VIEWKEEPER_FUZZ_LARGEST how many characters a view has at
most; `make fuzz SECONDS=600` goes on for a time instead.
With -s the strategies are listed by construct.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from tests.properties.regressions import REGRESSIONS
from tests.support.random_cases import Tally, wrong_cases
from viewkeeper.maintenance.build_plan import plan_refresh
from viewkeeper.maintenance.plan import CheckConstraint
from viewkeeper.testing import (
    Case,
    case_of,
    check_case,
    check_case_with_kept_groups,
    random_case,
)
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.duckdb_runner import DuckDbRun, TableState
from viewkeeper.testing.views import CONSTRUCTS

CASES = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "3000"))
BROKEN, KEPT = CASES // 10, CASES // 12
PLAIN = CASES - KEPT
"""Cases whose changes break constraints, cases with kept groups (those views that have groups inside), and all others: together
more than are asked for."""

BLOCK = 250
"""So many cases are one test, so that processes can share them."""

SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "1996"))
LARGEST = int(os.environ.get("VIEWKEEPER_FUZZ_LARGEST", "0"))
"""How many characters a view has at most. The largest tenth of all views takes nearly half of the time, so without it most
views are small and none is huge; `make fuzz` has those too."""

LEAST_INCREMENTAL = 0.8
"""The share of refreshes that must not recompute."""

pytestmark = pytest.mark.timeout(0)


def _largest(number: int) -> int:
    return LARGEST or (700 if number % 10 == 0 else 240)


def _cases(
    numbers: range, breaks_constraints: bool = False, largest: Callable[[int], int] = _largest
) -> Iterator[Case]:
    return (random_case(SEED * 100_003 + at, breaks_constraints, largest(at)) for at in numbers)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("case", REGRESSIONS, ids=lambda case: case.name)
def test_what_was_wrong_once(database: duckdb.DuckDBPyConnection, case: Case) -> None:
    check_case(database, case)
    check_case(database, replace(case, is_trusted=False))
    check_case_with_kept_groups(database, case)


def test_random_views_have_every_construct() -> None:
    assert frozenset().union(*(case.constructs for case in _cases(range(1000)))) == CONSTRUCTS


@pytest.mark.parametrize("first", range(0, PLAIN, BLOCK))
def test_plans_give_the_bag_of_the_query(database: duckdb.DuckDBPyConnection, first: int) -> None:
    tally = Tally()
    failures = wrong_cases(database, _cases(range(first, min(first + BLOCK, PLAIN))), tally)
    print(f"\n{tally}")
    assert not failures, "\n\n".join(failures)
    assert tally.failed_queries <= 0.05 * BLOCK, "many queries fail on the first rows"
    if tally.cases + tally.failed_queries == BLOCK:
        assert tally.incremental >= LEAST_INCREMENTAL


@pytest.mark.parametrize("first", range(0, KEPT, BLOCK))
def test_views_over_kept_groups_give_the_bag_of_the_query(
    database: duckdb.DuckDBPyConnection, first: int
) -> None:
    """Every group inside a view that can be updated is kept in a hidden view of its own."""
    tally = Tally()
    numbers = range(first, min(first + BLOCK, KEPT))
    cases = _cases(numbers, largest=lambda _: LARGEST or 500)
    failures = wrong_cases(database, cases, tally, check_case_with_kept_groups)
    assert not failures, "\n\n".join(failures)
    if len(numbers) == BLOCK:
        assert tally.cases >= 0.3 * BLOCK, "few views have groups inside"
        assert tally.incremental >= LEAST_INCREMENTAL


@pytest.mark.parametrize("first", range(0, BROKEN, BLOCK))
def test_broken_constraints_are_found_or_do_no_harm(first: int, database: duckdb.DuckDBPyConnection) -> None:
    numbers = range(first, min(first + BLOCK, BROKEN))
    failures = wrong_cases(database, _cases(numbers, breaks_constraints=True), Tally())
    assert not failures, "\n\n".join(failures)


# ------------------------------------------------------------------------------------------- constraints

SHOP = """
CREATE TABLE parent (id INT CONSTRAINT parent_key PRIMARY KEY, name STRING);
CREATE TABLE child (id INT PRIMARY KEY, parent_id INT NOT NULL CONSTRAINT child_fk REFERENCES parent)
"""


def test_checks_find_every_violation(database: duckdb.DuckDBPyConnection) -> None:
    """Random states in which keys and foreign keys need not hold: a check finds rows just when they do not."""
    text = "SELECT c.id, p.name FROM child c JOIN parent p ON p.id = c.parent_id"
    case = case_of(SHOP, text, [])
    columns = {table.id: table.columns for table in case.schema.tables}
    seen: Counter[bool] = Counter()
    with database.cursor() as own:
        view = definition(own, case)
        for number in range(150):
            generator = random.Random(SEED * 7 + number)
            ids = [generator.randint(0, 3) for _ in range(generator.randint(2, 3))]
            parent: list[Any] = [(i, "p") for i in ids]
            child: list[Any] = [(n, generator.randint(0, 3)) for n in range(generator.randint(0, 3))]
            states = {
                "parent": TableState(columns["parent"], parent[:1], parent, ("id",)),
                "child": TableState(columns["child"], [], child),
            }
            kinds = {name: state.kinds for name, state in states.items() if state.kinds}
            plan = plan_refresh(view, kinds)
            checks = tuple(step for step in plan.steps if isinstance(step, CheckConstraint))
            run = DuckDbRun(own, view)
            run.run(replace(plan, steps=checks), states)
            holds = len(set(ids)) == len(ids) and all(row[1] in ids for row in child)
            assert (not run.violations) == holds, f"case {number} of seed {SEED}: {parent} {child}"
            seen[holds] += 1
    assert seen[True] and seen[False]
