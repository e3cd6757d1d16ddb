"""The rules of the airline's views as they were published, in our SQL: ours do the same, where they were right.

Written down by hand, by templates: `{t}` stands for the table `t` in some state. With NOT EXISTS two corrections are needed:
a row enters the view only if nothing blocks it now. Without them the view goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import duckdb
import pytest

from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES
from tests.support.rule_runner import RuleRun, answers, rules_of, transition
from viewkeeper.maintenance.plan import State
from viewkeeper.testing import Case, case_for_view
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.bags import compare_bags
from viewkeeper.testing.duckdb_runner import TableState, fill

LOSSES, GAINS = (State.DELETED, State.OLD_UPDATED), (State.INSERTED, State.NEW_UPDATED)


@dataclass(frozen=True)
class Published:
    """Rows of a view by the changes of one table: which parts, which statement, the states of the other tables."""

    table: str
    parts: tuple[State, ...]
    deletes: bool
    rows: str
    others: State
    whole: bool = False
    """Evaluate the whole view, and let the other rules rest."""


MEALS = (
    "SELECT res.seat, psgr.meal FROM {res} AS res, {psgr} AS psgr "
    "WHERE res.flight_id = 7 AND res.psgr_id = psgr.psgr_id AND psgr.meal IS NOT NULL"
)
MILES = "SELECT psgr_id AS id FROM {psgr} AS psgr WHERE psgr.ffn IN (SELECT ffn FROM {ff} AS ff WHERE miles > 50000)"
BAD = "SELECT res_id FROM {res} AS res WHERE NOT EXISTS (SELECT * FROM {flight} AS f WHERE f.flight_id = res.flight_id)"
BLOCKED = "SELECT res_id FROM res_new AS res WHERE EXISTS (SELECT * FROM {flight} AS f WHERE f.flight_id = res.flight_id)"
CORRECTION = " AND NOT EXISTS (SELECT * FROM flight_new AS g WHERE g.flight_id = res.flight_id)"


FLIERS = "SELECT DISTINCT psgr.ffn FROM {psgr} AS psgr, {res} AS res WHERE psgr.psgr_id = res.psgr_id"


def by(table: str, rows: str) -> list[Published]:
    """The rules of a safe reference that is not in a negative subquery."""
    return [
        Published(table, LOSSES, True, rows, State.OLD),
        Published(table, GAINS, False, rows, State.NEW),
    ]


def bad_flight(correction: str) -> list[Published]:
    return [
        *by("res", BAD),
        Published("flight", GAINS, True, BLOCKED, State.NEW),
        Published("flight", LOSSES, False, BLOCKED + correction, State.OLD),
    ]


RULES = {
    "ff_res": [
        Published("res", LOSSES, False, FLIERS, State.NEW, whole=True),
        Published("res", GAINS[:1], False, FLIERS, State.NEW),
        *by("psgr", FLIERS),
    ],
    "special_meals": [*by("res", MEALS), *by("psgr", MEALS)],
    "many_miles": [*by("psgr", MILES), *by("ff", MILES)],
    "bad_flight": bad_flight(CORRECTION),
}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


class PublishedRun:
    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        case: Case,
        rules: list[Published],
        loaded: list[tuple[object, ...]],
    ) -> None:
        self._database, self._case, self._rules, self.rows = database, case, rules, loaded

    def react(self, tables: dict[str, TableState]) -> None:
        for table in self._case.schema.tables:
            if tables[table.id].key:
                for state in (State.OLD, State.NEW, *LOSSES, *GAINS):
                    fill(
                        self._database,
                        f"{table.id}_{state.value}",
                        table.columns,
                        tables[table.id].rows(state),
                    )
        for rule in self._rules:
            if rule.whole and any(tables[rule.table].rows(part) for part in rule.parts):
                names = {table.id: f"{table.id}_{rule.others.value}" for table in self._case.schema.tables}
                self.rows = self._database.execute(rule.rows.format(**names)).fetchall()
                return
        for rule in sorted(
            (each for each in self._rules if not each.whole), key=lambda each: not each.deletes
        ):
            for part in rule.parts:
                names = {table.id: f"{table.id}_{rule.others.value}" for table in self._case.schema.tables}
                sql = rule.rows.format(**{**names, rule.table: f"{rule.table}_{part.value}"})
                found = self._database.execute(sql).fetchall()
                if rule.deletes:
                    self.rows = [row for row in self.rows if row not in found]
                else:
                    self.rows += [row for row in found if row not in self.rows]


def runs(database: duckdb.DuckDBPyConnection, name: str, rules: list[Published], seed: int) -> Iterator[tuple[bool, bool]]:  # fmt: skip
    """Whether the published rules are right, and whether ours are, after each change."""
    text = (
        EXAMPLE_VIEWS[name] if name != "ff_res" else EXAMPLE_VIEWS[name].replace("SELECT", "SELECT DISTINCT")
    )
    case = case_for_view(WITH_MORE_TABLES, text, seed)
    view = definition(database, replace(case, is_trusted=True))
    right = answers(database, case)
    ours = RuleRun(database, view, rules_of(view, WITH_MORE_TABLES.declarations))
    ours.load(right[0])
    published = PublishedRun(database, case, rules, list(right[0]))
    for (before, after), rows in zip(pairwise(case.stream), right[1:], strict=True):
        changed = transition(case.schema, before, after)
        ours.react(changed)
        published.react(changed)
        yield compare_bags(rows, published.rows).is_empty, not ours.differs_from(rows)


@pytest.mark.parametrize("name", RULES)
def test_our_rules_do_what_the_corrected_ones_do(database: duckdb.DuckDBPyConnection, name: str) -> None:
    for seed in range(12):
        assert all(both == (True, True) for both in runs(database, name, RULES[name], seed))


def test_without_the_correction_a_good_reservation_becomes_bad(database: duckdb.DuckDBPyConnection) -> None:
    """Only the date of a flight changes: its old image no longer blocks, and nobody looks at the new one."""
    before = {
        "flight": [(7, 100, "2026-05-01")],
        "res": [(1, 1, 7, "1A")],
        "psgr": [],
        "ff": [],
        "member": [],
        "visit": [],
    }
    case = Case(
        WITH_MORE_TABLES,
        EXAMPLE_VIEWS["bad_flight"],
        (before, {**before, "flight": [(7, 100, "2026-05-02")]}),
    )
    changed = transition(case.schema, *case.stream)
    results = {}
    for correction in (CORRECTION, ""):
        published = PublishedRun(database, case, bad_flight(correction), [])
        published.react(changed)
        results[correction] = published.rows
    assert results == {CORRECTION: [], "": [(1,)]}


def test_on_random_changes_too(database: duckdb.DuckDBPyConnection) -> None:
    seen = [both for seed in range(12) for both in runs(database, "bad_flight", bad_flight(""), seed)]
    assert (False, True) in seen, "the printed rules were right every time"
    assert all(ours for _, ours in seen)
