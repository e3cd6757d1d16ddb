"""The analysis of views and the rules that follow: verdicts that must come out, and golden texts of all kinds of views."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import duckdb
import pytest

from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, view_of, with_trust
from tests.support.counted_calls import counting_calls
from tests.support.golden import check_golden
from viewkeeper.facts.safety.verdicts import Place
from viewkeeper.maintenance.rule_runs import rule_runs
from viewkeeper.maintenance.rules.explain_rules import analysis_json, explain_rules, explain_verdicts
from viewkeeper.maintenance.rules.rule import Certainty, Effect, RuleRun
from viewkeeper.maintenance.rules.view_rules import ViewRules, rules_for
from viewkeeper.sql.statements import Operation

DECLARED = WITH_MORE_TABLES.declarations


@dataclass(frozen=True)
class Analysed:
    """A view and what it stands for."""

    text: str
    stands_for: str


VIEWS = {
    # -- tables in FROM
    "shown_key": Analysed("SELECT flight_id, date FROM flight", "5.1: columns that are shown"),
    "alternate_key": Analysed("SELECT flight_no, date FROM flight", "5.1: an alternate, composite key"),
    "constants": Analysed(
        "SELECT seat FROM res WHERE flight_id = 7 AND seat <> '1A'", "5.1: equal to a constant"
    ),
    "chain_of_equalities": Analysed(
        "SELECT r.res_id FROM res r, psgr p, ff f WHERE r.psgr_id = p.psgr_id AND p.ffn = f.ffn AND f.miles > 3",
        "5.1: closure over equalities and keys",
    ),
    "key_shown_by_one_column": Analysed(
        "SELECT flight_no FROM flight WHERE flight_id = flight_no AND date = DATE '2026-05-01'",
        "5.1: two keys bound by one column",
    ),
    "composite_key_shown_by_one_column": Analysed(
        "SELECT r.psgr_id FROM res r, ff WHERE r.psgr_id = r.flight_id AND ff.ffn = r.psgr_id",
        "5.1: both columns of a key are equal to one column of the view",
    ),
    "no_key_shown": Analysed("SELECT meal FROM psgr", "5.3: duplicates"),
    "no_key_at_all": Analysed("SELECT ffn, lounge FROM visit", "5.3: a table without a key"),
    "key_that_may_be_null": Analysed("SELECT card FROM member", "5.3: UNIQUE admits NULLs"),
    "key_without_nulls": Analysed("SELECT card, level FROM member WHERE card > 0", "5.3: NULLs are rejected"),
    "key_half_null": Analysed(
        "SELECT club, level FROM member WHERE level > 0", "5.3: NULLs are rejected in one of two columns"
    ),
    "distinct": Analysed(
        "SELECT DISTINCT p.ffn FROM psgr p, res r WHERE p.psgr_id = r.psgr_id",
        "5.4: one reference safe, one not; 5.5 to 5.7",
    ),
    "self_join": Analysed(
        "SELECT a.res_id, b.res_id AS other FROM res a, res b WHERE a.flight_id = b.flight_id AND a.seat < b.seat",
        "5.4: one table twice, rules merged",
    ),
    "self_join_with_duplicates": Analysed(
        "SELECT a.seat, b.seat AS other FROM res a, res b WHERE a.flight_id = b.flight_id",
        "counting copies of a self-join",
    ),
    "disjunction": Analysed(
        "SELECT r.res_id FROM res r, psgr p WHERE r.psgr_id = p.psgr_id OR r.seat = p.meal",
        "a disjunction binds nothing",
    ),
    "query_in_from": Analysed(
        "SELECT x.seat FROM (SELECT seat, psgr_id FROM res WHERE flight_id = 7) x JOIN psgr p ON p.psgr_id = x.psgr_id",
        "queries in FROM that join and filter",
    ),
    # -- subqueries that must have rows
    "exists": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id AND r.flight_id = 7)",
        "6.1, 6.3: equal to a bound column, to a constant; 6.4 to 6.6",
    ),
    "exists_not_safe": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id)",
        "6.3: not safe",
    ),
    "exists_of_two_tables": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE EXISTS (SELECT 1 FROM res r, flight f "
        "WHERE r.psgr_id = p.psgr_id AND r.flight_id = f.flight_id AND f.flight_no = 100 AND f.date = DATE '2026-05-01')",
        "6.1: closure inside the subquery",
    ),
    "in_of_two_columns": Analysed(
        "SELECT res_id FROM res WHERE (psgr_id, flight_id) IN (SELECT ffn, miles FROM ff)",
        "6.3: partners by position",
    ),
    "greater_than_any": Analysed(
        "SELECT psgr_id FROM psgr WHERE ffn > ANY (SELECT miles FROM ff)", "6.3: comparison with ANY"
    ),
    "not_equal_any": Analysed(
        "SELECT psgr_id FROM psgr WHERE ffn <> ANY (SELECT miles FROM ff)", "<> ANY can only add rows"
    ),
    "exists_in_exists": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id AND r.seat = '1A' AND "
        "EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = r.flight_id AND f.flight_no = 100 AND f.date = DATE '2026-05-01'))",
        "nested subqueries",
    ),
    "exists_with_duplicates": Analysed(
        "SELECT seat FROM res WHERE EXISTS (SELECT 1 FROM flight WHERE flight.flight_no = res.flight_id)",
        "counting copies with EXISTS",
    ),
    "join_for_in": Analysed(
        "SELECT psgr.psgr_id AS id FROM psgr, ff WHERE psgr.ffn = ff.ffn AND miles > 50000",
        "footnote 10: the join that many_miles is equal to",
    ),
    # -- subqueries that must have none
    "not_exists_blocked_by_many": Analysed(
        "SELECT res_id FROM res WHERE NOT EXISTS (SELECT 1 FROM flight WHERE flight.flight_no = res.flight_id)",
        "7.1, 7.3: I-safe, not DU-safe; 7.2",
    ),
    "not_exists_by_unbound_columns": Analysed(
        "SELECT DISTINCT seat FROM res WHERE NOT EXISTS (SELECT 1 FROM flight WHERE flight.flight_no = res.flight_id)",
        "7.1: not I-safe",
    ),
    "not_exists_decided_by_the_view": Analysed(
        "SELECT res_id, flight_id FROM res WHERE NOT EXISTS (SELECT 1 FROM flight WHERE flight.flight_id = res.flight_id)",
        "7.2, 7.4, 7.5: what is blocked is found in the view",
    ),
    "not_exists_by_a_column_with_nulls": Analysed(
        "SELECT id, club FROM member WHERE NOT EXISTS (SELECT 1 FROM ff WHERE ff.miles = member.club)",
        "a NULL in the subquery blocks nothing, also where the view decides",
    ),
    "not_in": Analysed(
        "SELECT psgr_id FROM psgr WHERE ffn NOT IN (SELECT ffn FROM ff)", "NOT IN without NULLs is NOT EXISTS"
    ),
    "not_in_with_nulls": Analysed(
        "SELECT psgr_id FROM psgr WHERE psgr_id NOT IN (SELECT miles FROM ff)", "NOT IN with NULLs binds nothing"
    ),
    "not_equal_all": Analysed(
        "SELECT psgr_id FROM psgr WHERE psgr_id <> ALL (SELECT ffn FROM ff)", "<> ALL is negative"
    ),
    "greater_than_all_and_not_in": Analysed(
        "SELECT psgr_id FROM psgr WHERE psgr_id > ALL (SELECT miles FROM ff) AND (psgr_id, ffn) NOT IN (SELECT ffn, miles FROM ff)",
        "two subqueries that block the same row",
    ),
    "not_exists_with_duplicates": Analysed(
        "SELECT seat FROM res WHERE NOT EXISTS (SELECT 1 FROM flight WHERE flight.flight_no = res.flight_id)",
        "counting copies with NOT EXISTS",
    ),
    "not_exists_in_not_exists": Analysed(
        "SELECT r.res_id FROM res r WHERE NOT EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = r.flight_id AND "
        "NOT EXISTS (SELECT 1 FROM ff WHERE ff.ffn = f.flight_no))",
        "nested subqueries: less of less is more",
    ),
    "not_exists_in_exists": Analysed(
        "SELECT DISTINCT seat, flight_id FROM res WHERE EXISTS (SELECT 1 FROM flight f WHERE f.flight_no = res.flight_id AND "
        "NOT EXISTS (SELECT 1 FROM ff WHERE ff.ffn = f.flight_no) AND NOT EXISTS (SELECT 1 FROM psgr p WHERE p.ffn = f.flight_id))",
        "nested subqueries of both kinds",
    ),
    "three_times_not_exists": Analysed(
        "SELECT DISTINCT p.meal FROM psgr p WHERE NOT EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id AND "
        "NOT EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = r.flight_id AND NOT EXISTS (SELECT 1 FROM ff WHERE ff.miles = f.flight_no)))",
        "nested subqueries at any depth",
    ),
    # -- subqueries under OR and NOT
    "or_exists": Analysed(
        "SELECT r.res_id, r.seat FROM res r WHERE r.flight_id = 7 AND "
        "(r.seat = '1A' OR EXISTS (SELECT 1 FROM psgr p WHERE p.psgr_id = r.psgr_id AND p.meal = 'vegan'))",
        "a comparison or EXISTS: two branches",
    ),
    "or_in_and_not_exists": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE p.ffn IN (SELECT ffn FROM ff WHERE miles > 3) OR "
        "NOT EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id)",
        "IN or NOT EXISTS: one helps, one hinders",
    ),
    "or_not_in_with_nulls": Analysed(
        "SELECT id FROM member WHERE club = 1 OR card NOT IN (SELECT miles FROM ff)",
        "NOT IN keeps its NULLs under OR",
    ),
    "or_in_exists": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id AND "
        "(r.flight_id = 7 OR EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = r.flight_id)))",
        "EXISTS of a disjunction is a disjunction of EXISTS",
    ),
    "or_in_not_exists": Analysed(
        "SELECT p.psgr_id FROM psgr p WHERE NOT EXISTS (SELECT 1 FROM res r WHERE r.psgr_id = p.psgr_id AND "
        "(r.flight_id = 7 OR EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = r.flight_id)))",
        "NOT EXISTS of a disjunction: both have no row",
    ),
    "not_of_a_conjunction": Analysed(
        "SELECT r.res_id FROM res r WHERE NOT (r.seat = '1A' AND r.flight_id IN (SELECT flight_id FROM flight))",
        "De Morgan: NOT IN",
    ),
    "or_in_a_side": Analysed(
        "SELECT psgr_id FROM psgr p WHERE meal = 'x' OR EXISTS (SELECT 1 FROM ff WHERE ff.ffn = p.ffn) EXCEPT SELECT psgr_id FROM res",
        "a disjunction in a side of a set operation",
    ),
    "or_with_distinct": Analysed(
        "SELECT DISTINCT seat FROM res WHERE flight_id = 7 OR EXISTS (SELECT 1 FROM psgr p WHERE p.psgr_id = res.psgr_id)",
        "DISTINCT over a disjunction",
    ),
    "or_with_duplicates": Analysed(
        "SELECT seat FROM res WHERE res_id = 1 OR (res_id = 2 AND EXISTS (SELECT 1 FROM flight f WHERE f.flight_id = res.flight_id))",
        "branches that bind a key by different constants: duplicates",
    ),
    "too_many_branches": Analysed(
        "SELECT res_id FROM res WHERE "
        + " AND ".join(f"(seat = '{at}' OR EXISTS (SELECT 1 FROM ff WHERE ff.miles = res.res_id + {at}))" for at in range(4)),
        "more than 4 branches",
    ),
    # -- set operations
    "union": Analysed("SELECT ffn FROM psgr UNION SELECT ffn FROM ff", "8.1: union"),
    "union_of_three": Analysed(
        "SELECT meal FROM psgr UNION SELECT seat FROM res WHERE flight_id = 7 UNION SELECT name FROM psgr",
        "8.1: union of three, one table twice",
    ),
    "intersect": Analysed(
        "SELECT ffn FROM psgr INTERSECT SELECT ffn FROM ff INTERSECT SELECT flight_id FROM res", "8.2: intersect"
    ),
    "except": Analysed("SELECT ffn FROM psgr EXCEPT SELECT miles FROM ff", "EXCEPT"),
    "mixed_set_operators": Analysed(
        "(SELECT ffn FROM psgr UNION SELECT miles FROM ff) INTERSECT (SELECT flight_id FROM res EXCEPT SELECT flight_no FROM flight)",
        "mixed set operators",
    ),
    "union_all": Analysed("SELECT ffn FROM psgr UNION ALL SELECT miles FROM ff", "counting copies of UNION ALL"),
    # -- not analysed
    "groups": Analysed("SELECT flight_id, count(*) AS seats FROM res GROUP BY flight_id", "groups are not analysed"),
    "outer_join": Analysed(
        "SELECT r.res_id, p.meal FROM res r LEFT JOIN psgr p ON p.psgr_id = r.psgr_id", "outer joins are not analysed"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def found_for(database: duckdb.DuckDBPyConnection, name: str, text: str) -> ViewRules:
    found = rules_for(view_of(database, name, text), DECLARED)
    assert found is not None
    return found


def runs_for(database: duckdb.DuckDBPyConnection, name: str, text: str) -> Mapping[str, RuleRun]:
    """What refreshes make of the rules if all keys are trusted."""
    found = view_of(database, name, text, with_trust(WITH_MORE_TABLES))
    return rule_runs(found, found_for(database, name, text).rules)


def shown(text: str, found: ViewRules, runs: Mapping[str, RuleRun]) -> str:
    verdicts = explain_verdicts(found.analysis, found.rules, found.advice)
    bound = [
        f"bound: {', '.join(found.analysis.bound) or 'nothing'}",
        f"bound by correlation: {', '.join(found.analysis.correlated) or 'nothing'}",
    ]
    return "\n".join([text, "", *bound, *verdicts, *explain_rules(found.rules, runs)])


# ---------------------------------------------------------------------------- what must come out


@pytest.mark.parametrize("name", ["special_meals", "ff_res", "many_miles", "bad_flight"])
def test_example(database: duckdb.DuckDBPyConnection, name: str, request: pytest.FixtureRequest) -> None:
    text = EXAMPLE_VIEWS[name]
    check_golden(
        request, shown(text, found_for(database, name, text), runs_for(database, name, text)), ".txt"
    )


def verdicts(found: ViewRules) -> dict[str, tuple[Place, bool | None, bool | None, bool | None]]:
    return {
        str(each.reference.table): (each.reference.place, each.safe, each.i_safe, each.du_safe)
        for each in found.analysis.references
    }


def test_the_verdicts_on_the_four_views(database: duckdb.DuckDBPyConnection) -> None:
    found = {name: found_for(database, name, text) for name, text in EXAMPLE_VIEWS.items()}
    safe, unsafe = (Place.TOP, True, None, None), (Place.TOP, False, None, None)
    assert {name: each.analysis.duplicates.possible for name, each in found.items()} == {
        "special_meals": False,
        "ff_res": True,
        "many_miles": False,
        "bad_flight": False,
    }
    assert verdicts(found["special_meals"]) == {"res": safe, "psgr": safe}
    assert verdicts(found["ff_res"]) == {"psgr": safe, "res": unsafe}
    assert verdicts(found["many_miles"]) == {"psgr": safe, "ff": (Place.POSITIVE, True, None, None)}
    assert verdicts(found["bad_flight"]) == {"res": safe, "flight": (Place.NEGATIVE, None, True, True)}


def test_what_the_published_scheme_evaluates_anew(database: duckdb.DuckDBPyConnection) -> None:
    for text in (VIEWS["distinct"].text, EXAMPLE_VIEWS["ff_res"]):
        found = found_for(database, "v", text)
        anew = {
            (operation, str(rule.triggers[0].table))
            for rule in found.rules.rules
            for operation in rule.anew_in_the_paper
        }
        assert anew == {(Operation.DELETE, "res"), (Operation.UPDATE, "res")}


def test_a_derivation_reads_like_a_proof(database: duckdb.DuckDBPyConnection) -> None:
    found = found_for(database, "special_meals", EXAMPLE_VIEWS["special_meals"])
    assert [each.reason for each in found.analysis.references] == [
        "res.flight_id is bound: equal to the constant 7; res.seat is shown by the view; "
        "(flight_id, seat) is a key of res, so every column of res is bound",
        "res.flight_id is bound: equal to the constant 7; res.seat is shown by the view; "
        "(flight_id, seat) is a key of res, so every column of res is bound; "
        "psgr.psgr_id is bound: equal to res.psgr_id; "
        "(psgr_id) is a key of psgr, so every column of psgr is bound",
    ]


def test_a_subquery_and_the_join_it_is_equal_to_have_the_same_verdicts(
    database: duckdb.DuckDBPyConnection,
) -> None:
    one = found_for(database, "v", EXAMPLE_VIEWS["many_miles"]).analysis
    other = found_for(database, "v", VIEWS["join_for_in"].text).analysis
    assert [each.safe for each in one.references] == [each.safe for each in other.references] == [True, True]
    assert set(one.bound) | set(one.correlated) == set(other.bound)


# ---------------------------------------------------------------------------- golden texts


@pytest.mark.parametrize("name", VIEWS)
def test_analysed_view(
    database: duckdb.DuckDBPyConnection, name: str, request: pytest.FixtureRequest
) -> None:
    view = VIEWS[name]
    text = f"{view.text}\nstands for {view.stands_for}"
    found, runs = found_for(database, "v", view.text), runs_for(database, "v", view.text)
    check_golden(request, shown(text, found, runs), ".txt")


def test_an_analysis_takes_milliseconds(database: duckdb.DuckDBPyConnection) -> None:
    views = [view_of(database, "v", each.text) for each in VIEWS.values()]
    _, calls = counting_calls(lambda: [rules_for(view, DECLARED) for view in views])
    assert calls / len(views) < 25_000


def test_the_json_has_stable_names(database: duckdb.DuckDBPyConnection) -> None:
    found = found_for(database, "v", VIEWS["not_exists_blocked_by_many"].text)
    runs = runs_for(database, "v", VIEWS["not_exists_blocked_by_many"].text)
    data = json.loads(json.dumps(analysis_json(found.analysis, found.rules, found.advice, runs)))
    assert list(data) == [
        "duplicates",
        "references",
        "bound_columns",
        "correlated_bound_columns",
        "rules",
        "advice",
    ]
    assert list(data["duplicates"]) == ["possible", "reason"]
    top, negative = data["references"]
    assert list(top) == ["table", "alias", "position", "kind", "safe", "reason"]
    assert list(negative) == ["table", "alias", "position", "kind", "i_safe", "du_safe", "reason"]
    assert (top["kind"], negative["kind"]) == ("top", "negative")
    assert list(data["rules"][0]) == [
        "name", "triggers", "effect", "reason", "rematerializes_in_the_paper", "precedes",
        "in_a_refresh", "sql",
    ]  # fmt: skip
    assert list(data["rules"][0]["in_a_refresh"]) == ["runs", "how"]
    assert list(data["rules"][0]["triggers"][0]) == ["operation", "table", "columns"]
    assert list(data["advice"][0]) == ["what", "change", "gain"]


# ---------------------------------------------------------------------------- rules


def test_deletions_precede_insertions_and_rematerializing_precedes_all(
    database: duckdb.DuckDBPyConnection,
) -> None:
    view = view_of(database, "v", EXAMPLE_VIEWS["bad_flight"])
    chosen = frozenset({("flight", Operation.UPDATE), ("res", Operation.INSERT)})
    found = rules_for(replace(view, rematerialized=chosen), DECLARED)
    assert found is not None
    effects = [rule.effect for rule in found.rules.rules]
    assert effects == sorted(effects, key=list(Effect).index)
    first, *others = found.rules.rules
    assert first.effect is Effect.REMATERIALIZE
    assert set(first.precedes) == {rule.name for rule in others}
    assert {(each.object_id, each.operation) for each in first.triggers} == chosen
    left = {(each.object_id, each.operation) for rule in others for each in rule.triggers}
    assert not left & chosen and len(left) == 4


def test_an_update_triggers_by_the_columns_that_the_view_reads(database: duckdb.DuckDBPyConnection) -> None:
    found = found_for(database, "special_meals", EXAMPLE_VIEWS["special_meals"])
    columns = {
        str(each.table): each.columns for each in found.rules.triggers if each.operation is Operation.UPDATE
    }
    assert columns == {"res": ("psgr_id", "flight_id", "seat"), "psgr": ("psgr_id", "meal")}


def test_rules_for_one_table_and_one_effect_are_one_rule(database: duckdb.DuckDBPyConnection) -> None:
    found = found_for(database, "v", VIEWS["self_join"].text)
    assert [(rule.name, len(rule.actions)) for rule in found.rules.rules] == [
        ("del_res_v", 2),
        ("old_upd_res_v", 2),
        ("new_upd_res_v", 2),
        ("ins_res_v", 2),
    ]


def test_where_the_view_alone_decides(database: duckdb.DuckDBPyConnection) -> None:
    decided = {
        name: sorted(
            {
                str(trigger.table)
                for rule in found_for(database, name, text).rules.rules
                for action in rule.actions
                if action.certainty is Certainty.BY_THE_VIEW
                for trigger in rule.triggers
            }
        )
        for name, text in EXAMPLE_VIEWS.items()
    }
    assert decided == {"bad_flight": ["res"], "ff_res": [], "many_miles": ["psgr"], "special_meals": ["res"]}


# ---------------------------------------------------------------------------- advice


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (EXAMPLE_VIEWS["special_meals"], []),
        (
            EXAMPLE_VIEWS["ff_res"],
            ["SELECT DISTINCT …", "ALTER TABLE res ADD UNIQUE (psgr_id)", "SELECT …, res.res_id"],
        ),
        (
            VIEWS["key_that_may_be_null"].text,
            ["SELECT DISTINCT …", "member (card NOT NULL)", "SELECT …, member.id"],
        ),
        (
            VIEWS["not_exists_by_unbound_columns"].text,
            ["ALTER TABLE res ADD UNIQUE (seat)", "SELECT …, res.res_id", "SELECT …, res.flight_id"],
        ),
        (VIEWS["groups"].text, []),
    ],
)
def test_advice_is_offered_where_it_helps(
    database: duckdb.DuckDBPyConnection, text: str, changes: list[str]
) -> None:
    assert [each.change for each in found_for(database, "v", text).advice] == changes
