"""Plans by rules: what the view alone decides, when they are chosen, and what they check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from tests.support.airline import AIRLINE, EXAMPLE_VIEWS, TRUSTED_AIRLINE
from tests.support.golden import check_golden
from viewkeeper.facts.declared import Reliance
from viewkeeper.maintenance.build_plan import plan_refresh
from viewkeeper.maintenance.check_plan import check_plan
from viewkeeper.maintenance.explain import explain_plan
from viewkeeper.maintenance.plan import CheckConstraint, Derive, MaintenancePlan, State, Strategy
from viewkeeper.maintenance.rules.plan_leaving import plan_leaving_first
from viewkeeper.maintenance.rules.plan_rules import plan_by_rules, why_not_run
from viewkeeper.maintenance.rules.view_rules import rules_for
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.names import QualifiedName
from viewkeeper.sql.statements import Operation
from viewkeeper.testing import Case, case_of, check_case
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.tables import Schema, read_schema

CHAIN = (
    "SELECT r.res_id, f.date, p.name FROM res r, psgr p, flight f "
    "WHERE r.psgr_id = p.psgr_id AND r.flight_id = f.flight_id"
)
REMOVED, ADDED = frozenset({State.REMOVED}), frozenset({State.ADDED})


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def view(database: duckdb.DuckDBPyConnection, text: str, schema: Schema = AIRLINE) -> ViewDefinition:
    found = definition(database, Case(schema, text, ()))
    return replace(found, name=QualifiedName("default", "v"), id="v")


def tables(plan: MaintenancePlan) -> set[str]:
    """The tables that a plan reads, whole or in part."""
    reads = [read for step in plan.steps for read in step.reads]
    return {str(read.name) for read in reads if not read.state.is_change} - {"v"}


def test_deletions_that_the_view_decides_read_nothing_else(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    plan = plan_refresh(view(database, CHAIN, TRUSTED_AIRLINE), {"res": REMOVED})
    assert plan.strategy is Strategy.RULES and tables(plan) == set()
    check_golden(request, "\n".join(explain_plan(plan, "when rows go from res")), ".txt")


def test_a_key_that_is_not_trusted_is_checked_where_rows_went(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    found = view(database, CHAIN)
    plan = plan_refresh(found, {"res": REMOVED})
    assert plan.strategy is Strategy.RULES and tables(plan) == {"res"}
    assert plan.spot_checked == {Reliance("res", "res_pk")} and not plan.relies_on
    check_golden(request, "\n".join(explain_plan(plan, "when rows go from res")), ".txt")
    known = plan_refresh(found, {"res": REMOVED}, None, frozenset({Reliance("res", "res_pk")}))
    assert not any(isinstance(step, CheckConstraint) for step in known.steps)


def test_what_a_new_row_blocks_is_found_in_the_view(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    text = "SELECT res_id, flight_id FROM res WHERE flight_id NOT IN (SELECT flight_id FROM flight)"
    found = view(database, text)
    plan = plan_refresh(found, {"flight": ADDED})
    assert plan.strategy is Strategy.RULES and tables(plan) == set() and not plan.spot_checked
    check_golden(request, "\n".join(explain_plan(plan, "when flight grows")), ".txt")
    assert plan_refresh(found, {"flight": ADDED | REMOVED}).strategy is Strategy.DIFFERENTIAL


def test_a_distinct_view_loses_a_row_with_all_its_copies(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    text = (
        "SELECT DISTINCT r.res_id, f.date FROM res r, psgr p, flight f, ff "
        "WHERE p.meal = r.seat AND r.flight_id = f.flight_id AND p.ffn = ff.ffn"
    )
    found = view(database, text, TRUSTED_AIRLINE)
    alone = plan_refresh(found, {"res": REMOVED})
    assert alone.strategy is Strategy.RULES and tables(alone) == set()
    plan = plan_leaving_first(found, {"res": REMOVED, "psgr": ADDED}, frozenset(), "res, psgr changed")
    assert plan is not None
    check_golden(request, "\n".join(explain_plan(plan, "when res and psgr change")), ".txt")


@pytest.mark.parametrize(
    ("text", "schema", "table", "parts", "strategy"),
    [
        ("SELECT res_id, seat FROM res", TRUSTED_AIRLINE, "res", REMOVED, Strategy.RULES),
        ("SELECT res_id, seat FROM res", AIRLINE, "res", REMOVED, Strategy.DIFFERENTIAL),
        (EXAMPLE_VIEWS["ff_res"], TRUSTED_AIRLINE, "res", REMOVED, Strategy.DIFFERENTIAL),
        (EXAMPLE_VIEWS["special_meals"], AIRLINE, "res", REMOVED, Strategy.DIFFERENTIAL),
        (EXAMPLE_VIEWS["bad_flight"], AIRLINE, "res", REMOVED, Strategy.DIFFERENTIAL),
        (EXAMPLE_VIEWS["bad_flight"], TRUSTED_AIRLINE, "res", REMOVED, Strategy.RULES),
        (EXAMPLE_VIEWS["bad_flight"], TRUSTED_AIRLINE, "res", REMOVED | ADDED, Strategy.RULES),
        (EXAMPLE_VIEWS["bad_flight"], AIRLINE, "res", REMOVED | ADDED, Strategy.DIFFERENTIAL),
        (CHAIN, AIRLINE, "res", REMOVED, Strategy.RULES),
        (CHAIN, AIRLINE, "res", REMOVED | ADDED, Strategy.DIFFERENTIAL),
        (CHAIN, AIRLINE, "psgr", REMOVED, Strategy.DIFFERENTIAL),
    ],
)
def test_rules_are_chosen_where_they_read_less(
    database: duckdb.DuckDBPyConnection,
    text: str,
    schema: Schema,
    table: str,
    parts: frozenset[State],
    strategy: Strategy,
) -> None:
    plan = plan_refresh(view(database, text, schema), {table: parts})
    assert plan.strategy is strategy, plan.reason


@pytest.mark.parametrize(
    ("name", "table"), [("special_meals", "res"), ("many_miles", "psgr"), ("bad_flight", "res")]
)
def test_the_views_of_the_example_decide_some_deletions_alone(
    database: duckdb.DuckDBPyConnection, name: str, table: str
) -> None:
    plan = plan_refresh(view(database, EXAMPLE_VIEWS[name], TRUSTED_AIRLINE), {table: REMOVED})
    assert plan.strategy is Strategy.RULES and tables(plan) == set()


@pytest.mark.parametrize("name", ["special_meals", "many_miles", "bad_flight"])
def test_the_rules_of_the_example_are_one_step_of_a_refresh(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest, name: str
) -> None:
    """After changes of all kinds: what is printed for each rule stands in the plan, over its relations."""
    found = view(database, EXAMPLE_VIEWS[name], TRUSTED_AIRLINE)
    plan = plan_refresh(found, {each.object_id: REMOVED | ADDED for each in found.query.inputs})
    assert plan.strategy is Strategy.RULES and not check_plan(plan)
    first = plan.steps[0]
    assert isinstance(first, Derive) and first.ends_if_empty
    rules = rules_for(found, TRUSTED_AIRLINE.declarations)
    assert rules is not None
    assert plan.facts == (f"rules: {', '.join(each.name for each in rules.rules.rules)}",)
    assert first.sql.count("UNION ALL") == len(rules.rules.rules) / 2 - 1
    assert all(read.limit is not None for read in first.reads if not read.state.is_change)
    check_golden(request, "\n".join(explain_plan(plan, "when everything changes")), ".txt")


def test_keys_that_are_not_trusted_are_checked_before_rules_rely_on_them(
    database: duckdb.DuckDBPyConnection,
) -> None:
    found = view(database, EXAMPLE_VIEWS["many_miles"])
    kinds = {"psgr": ADDED, "ff": REMOVED}
    plan = plan_by_rules(found, kinds, frozenset(), "")
    assert plan is not None and plan.relies_on == {Reliance("psgr", "psgr_pk"), Reliance("ff", "ff_pk")}
    checks = [each.title for each in plan.steps if isinstance(each, CheckConstraint)]
    assert checks == [
        "check ff_pk of ff: all rows before the changes",
        "check psgr_pk of psgr: all rows before the changes",
        "check psgr_pk of psgr: the inserted keys",
    ]
    assert plan_refresh(found, kinds).strategy is Strategy.DIFFERENTIAL
    known = plan_by_rules(found, kinds, plan.relies_on, "")
    assert known is not None
    assert [each.title for each in known.steps if isinstance(each, CheckConstraint)] == checks[2:]


def test_new_values_of_another_key_are_checked_too(database: duckdb.DuckDBPyConnection) -> None:
    """Changes come by the first key; an update may give the second key of a row a value that is there already."""
    found = view(database, "SELECT flight_id, seat FROM res")
    updated = frozenset({State.OLD_UPDATED, State.NEW_UPDATED})
    plan = plan_by_rules(
        found, {"res": updated}, frozenset({Reliance("res", "res_flight_id_seat_unique")}), ""
    )
    assert plan is not None and plan.relies_on == {Reliance("res", "res_flight_id_seat_unique")}
    (check,) = (each for each in plan.steps if isinstance(each, CheckConstraint))
    assert check.reads[0].state is State.ADDED


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (EXAMPLE_VIEWS["ff_res"], "copies of its rows are counted"),
        ("SELECT DISTINCT res_id FROM res", "the view stores how often each of its rows is made, and rules do not tell"),
        ("SELECT flight_id, count(*) AS n FROM res GROUP BY flight_id", "it groups"),
        ("SELECT res_id, rand() AS r FROM res", "rand gives another value each time"),
        (
            "SELECT psgr_id FROM psgr UNION SELECT psgr_id FROM res",
            "the view stores how often each of its rows is made, and rules do not tell",
        ),
        ("SELECT psgr_id FROM psgr EXCEPT SELECT psgr_id FROM res", None),
        ("SELECT psgr_id FROM psgr EXCEPT SELECT psgr_id + 0.5 FROM res", None),
        ("(SELECT psgr_id AS n FROM psgr UNION SELECT ffn FROM ff) EXCEPT SELECT psgr_id / 2 FROM res", None),
        (
            "(SELECT psgr_id AS n FROM psgr INTERSECT SELECT ffn FROM ff) EXCEPT SELECT psgr_id / 2 FROM res",
            "set operations in set operations may compare n in types of their own",
        ),
        (
            "(SELECT psgr_id AS n FROM psgr UNION SELECT psgr_id / 2 FROM res) EXCEPT SELECT ffn FROM ff",
            "set operations in set operations may compare n in types of their own",
        ),
        ("SELECT res_id FROM res", None),
    ],
)  # fmt: skip
def test_why_rules_do_not_run(database: duckdb.DuckDBPyConnection, text: str, why: str | None) -> None:
    found = view(database, text)
    assert why_not_run(found, found.declared) == why


NUMBERS = """
CREATE TABLE whole (big BIGINT NOT NULL, small INT, PRIMARY KEY (big) RELY);
CREATE TABLE real (id INT NOT NULL, rate DOUBLE, money DECIMAL(9,2), PRIMARY KEY (id) RELY)
"""


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("SELECT big FROM whole INTERSECT SELECT money FROM real", True),
        ("SELECT big FROM whole EXCEPT SELECT rate FROM real", False),
        ("SELECT big, small FROM whole EXCEPT SELECT id, rate FROM real", True),
    ],
)
def test_a_conversion_that_can_make_one_value_of_two_binds_nothing(
    database: duckdb.DuckDBPyConnection, text: str, is_safe: bool
) -> None:
    found = rules_for(view(database, text, read_schema(NUMBERS)), read_schema(NUMBERS).declarations)
    assert found is not None and found.analysis.references[0].safe is is_safe


def test_sides_of_different_types_are_compared_in_that_of_the_view(
    database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    found = view(
        database, "SELECT big, small FROM whole EXCEPT SELECT rate, id FROM real", read_schema(NUMBERS)
    )
    plan = plan_by_rules(found, {"whole": ADDED, "real": REMOVED}, frozenset(), "")
    assert plan is not None and not check_plan(plan)
    check_golden(request, "\n".join(explain_plan(plan, "when whole grows and rows go from real")), ".txt")


@pytest.mark.parametrize("left", [2**53, 2**53 + 1])
def test_a_row_stays_that_another_value_makes_too(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Two integers are one number in the view, whose type has no room for both."""
    monkeypatch.setattr(
        "viewkeeper.maintenance.build_plan.reading", lambda plan: plan.strategy is not Strategy.RULES
    )
    before = {"whole": [(2**53, 1), (2**53 + 1, 1), (7, 1)], "real": []}
    stream = [before, {"whole": [(left, 1)], "real": [(1, 7.0, None)]}]
    case = case_of(NUMBERS, "SELECT big FROM whole EXCEPT SELECT rate FROM real", stream)
    (refresh,) = check_case(database, case).refreshes
    assert refresh.strategy is Strategy.RULES


@pytest.mark.parametrize("left", [1, 2])
def test_a_row_that_two_branches_make_is_there_twice(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Each branch binds the key, by another constant: as a union of branches the view would lose a copy."""
    monkeypatch.setattr(
        "viewkeeper.maintenance.build_plan.reading", lambda plan: plan.strategy is not Strategy.RULES
    )
    schema = "CREATE TABLE t (id INT NOT NULL, a INT, PRIMARY KEY (id) RELY); CREATE TABLE u (a INT)"
    text = "SELECT a FROM t WHERE id = 1 OR (id = 2 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a))"
    both, one = [(1, 5), (2, 5)], [(left, 5)]
    stream = [{"t": one, "u": [(5,)]}, {"t": both, "u": [(5,)]}, {"t": one, "u": [(5,)]}]
    outcome = check_case(database, case_of(schema, text, stream))
    assert outcome.strategies == {Strategy.DIFFERENTIAL}


def test_a_reason_says_what_is_saved_and_what_is_trusted(database: duckdb.DuckDBPyConnection) -> None:
    plan = plan_refresh(view(database, CHAIN, TRUSTED_AIRLINE), {"res": REMOVED})
    assert plan.reason == (
        "res changed; what leaves is found in the view itself, psgr, flight need not be read for it; "
        "res_pk trusted without a check (RELY)"
    )
    assert plan.facts == (
        "what rows deleted from or updated in r take along is found in the view by res_id: key res_pk of res",
    )


def test_a_reason_says_that_the_view_need_not_be_read(database: duckdb.DuckDBPyConnection) -> None:
    plan = plan_refresh(view(database, EXAMPLE_VIEWS["special_meals"], TRUSTED_AIRLINE), {"res": ADDED})
    assert tables(plan) == {"psgr"} and not any(
        read.name == plan.view for step in plan.steps for read in step.reads
    )
    assert plan.reason == (
        "res changed; rules tell what leaves and enters; v need not be read; "
        "psgr_pk, res_flight_id_seat_unique trusted without a check (RELY)"
    )


def test_a_second_row_with_a_deleted_key_stops_the_refresh(database: duckdb.DuckDBPyConnection) -> None:
    rows = {
        "flight": [(7, 1, 1)],
        "psgr": [(1, "a", None, None, 1)],
        "res": [(1, 1, 7, "1A"), (1, 1, 7, "2B")],
        "ff": [],
    }
    schema = AIRLINE.to_sql().replace("date DATE", "date INT")
    case = case_of(schema, CHAIN, [rows, {**rows, "res": rows["res"][:1]}], changes_by_key=False)
    (refresh,) = check_case(database, case).refreshes
    assert refresh.strategy is Strategy.RULES and refresh.violation


@pytest.mark.parametrize(
    ("kinds", "chosen", "reason"),
    [
        ({State.INSERTED}, Operation.DELETE, None),
        ({State.DELETED}, Operation.DELETE, "REMATERIALIZE ON DELETE of flight was asked for"),
        ({State.REMOVED}, Operation.DELETE, "REMATERIALIZE ON DELETE of flight was asked for"),
        ({State.REMOVED}, Operation.UPDATE, None),
        ({State.REMOVED, State.ADDED}, Operation.UPDATE, "REMATERIALIZE ON UPDATE of flight was asked for"),
        ({State.OLD_UPDATED, State.NEW_UPDATED}, Operation.INSERT, None),
    ],
)
def test_operations_after_which_the_user_has_the_view_evaluated(
    database: duckdb.DuckDBPyConnection, kinds: set[State], chosen: Operation, reason: str | None
) -> None:
    found = view(database, EXAMPLE_VIEWS["bad_flight"])
    plan = plan_refresh(
        replace(found, rematerialized=frozenset({("flight", chosen)})), {"flight": frozenset(kinds)}
    )
    if reason is None:
        assert plan.strategy is not Strategy.RECOMPUTE
    else:
        assert plan.strategy is Strategy.RECOMPUTE and plan.reason == f"flight changed; {reason}"


def test_an_empty_reason_is_one_too(database: duckdb.DuckDBPyConnection) -> None:
    """AUTO asks for the plan that recomputes before it knows why it would."""
    plan = plan_refresh(view(database, CHAIN, TRUSTED_AIRLINE), {"res": REMOVED}, "")
    assert plan.strategy is Strategy.RECOMPUTE
