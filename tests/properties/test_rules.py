"""What the analysis of views promises, tried on random data.

- Rules keep a view equal to its query; where a reference is safe, they do so without a second look at the view's query.
- A view that is said to hold no duplicates holds none.
- And the other way round, by search: where duplicates are said to be possible there are some; where a reference is said not
  to be safe, rules that take it for safe go wrong. What the search does not find is listed here, with the reason.

VIEWKEEPER_FUZZ_CASES and VIEWKEEPER_FUZZ_SEED say how many and which random views. With -s the figures are printed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from tests.maintenance.test_rules import VIEWS
from tests.support.airline import EXAMPLE_VIEWS, WITH_MORE_TABLES, with_trust
from tests.support.random_selects import (
    TABLES,
    TYPED_TABLES,
    random_keyed_select,
    random_selects,
    random_set_operation,
)
from tests.support.rule_runner import RuleRun, answers, rules_of, transition
from viewkeeper.algebra.from_query import OutsideAlgebra
from viewkeeper.facts.safety.verdicts import Place, ReferenceVerdict, ViewAnalysis
from viewkeeper.maintenance.differential.derivation import Derivation
from viewkeeper.maintenance.plan import MaintenancePlan, State, Strategy
from viewkeeper.maintenance.rules import derive, limited_sql, plan_rules
from viewkeeper.maintenance.rules.derive import derive_rules
from viewkeeper.maintenance.rules.rule import Action, Certainty, Effect
from viewkeeper.maintenance.rules.set_checks import adds_to_view
from viewkeeper.maintenance.rules.view_analysis import analysis_of
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.statements import Operation
from viewkeeper.testing import Case, Disagreement, case_for_view, check_case, random_case
from viewkeeper.testing.agreement import definition

SEED = int(os.environ.get("VIEWKEEPER_FUZZ_SEED", "1991"))
RANDOM_VIEWS = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "1000")) // 16
PLANNED_VIEWS = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "1000")) // 40
KEYED_VIEWS = int(os.environ.get("VIEWKEEPER_FUZZ_CASES", "1000")) // 50
STREAMS = 4
LONGEST_SEARCH = 60

TEXTS = {**EXAMPLE_VIEWS, **{name: view.text for name, view in VIEWS.items()}}
DECLARED = WITH_MORE_TABLES.declarations
TRUSTED_TABLES = with_trust(TABLES)
TRUSTED_TYPED_TABLES = with_trust(TYPED_TABLES)

pytestmark = pytest.mark.timeout(0)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def view_and_analysis(
    database: duckdb.DuckDBPyConnection, case: Case
) -> tuple[ViewDefinition, ViewAnalysis] | None:
    view = definition(database, replace(case, is_trusted=True))
    if isinstance(view.algebra, OutsideAlgebra):
        return None
    return view, analysis_of(view, case.schema.declarations)


def goes_wrong(database: duckdb.DuckDBPyConnection, run: RuleRun, case: Case) -> str | None:
    """How a view that its rules keep differs from its query, if it does."""
    right = answers(database, case)
    run.load(right[0])
    for (before, after), rows in zip(pairwise(case.stream), right[1:], strict=True):
        run.react(transition(case.schema, before, after))
        if run.differs_from(rows):
            return (
                f"{case.text}\nafter {run.triggered}\nfrom {before}\nto {after}\nis {run.rows()}, not {rows}"
            )
    return None


# ---------------------------------------------------------------------------- rules keep views


@pytest.mark.parametrize("name", TEXTS)
def test_rules_keep_the_view(database: duckdb.DuckDBPyConnection, name: str) -> None:
    for seed in range(STREAMS):
        case = case_for_view(WITH_MORE_TABLES, TEXTS[name], SEED + seed)
        view = definition(database, replace(case, is_trusted=True))
        rules = rules_of(view, DECLARED)
        if rules.unread is not None:
            return
        wrong = goes_wrong(database, RuleRun(database, view, rules), case)
        assert wrong is None, wrong


def test_rules_keep_random_views(database: duckdb.DuckDBPyConnection) -> None:
    """Half of the views are of the kind that is analysed, half of any kind."""
    tried: Counter[str] = Counter()
    for number in range(RANDOM_VIEWS):
        seed = SEED * 100_003 + number
        text = random_selects(random.Random(seed))
        for case in (case_for_view(TABLES, text, seed), random_case(seed, is_plain=True)):
            found = view_and_analysis(database, case)
            if found is None:
                continue
            view, analysis = found
            rules = rules_of(view, case.schema.declarations)
            tried["views"] += 1
            if rules.unread is not None:
                continue
            wrong = goes_wrong(database, RuleRun(database, view, rules), case)
            assert wrong is None, f"{case.name}: {wrong}"
            tried["views with rules"] += 1
            tried.update(f"{each.reference.place.value} references" for each in analysis.references)
            tried.update(f"actions {each.certainty.name}" for rule in rules.rules for each in rule.actions)
    print(f"\n{dict(tried)}")
    assert tried["views with rules"] > RANDOM_VIEWS / 2


def test_a_view_that_is_rematerialized_by_choice(database: duckdb.DuckDBPyConnection) -> None:
    chosen = frozenset({("res", Operation.DELETE), ("flight", Operation.UPDATE)})
    done: list[str] = []
    for seed in range(STREAMS):
        case = case_for_view(WITH_MORE_TABLES, TEXTS["bad_flight"], SEED + seed)
        view = definition(database, replace(case, is_trusted=True))
        rules = rules_of(view, DECLARED, chosen)
        wrong = goes_wrong(database, RuleRun(database, view, rules), case)
        assert wrong is None, wrong
        done += [rule.name for rule in rules.rules]
    assert any(name.startswith("rematerialize") for name in done)


# ---------------------------------------------------------------------------- plans by rules


DECIDING = {
    "special_meals", "many_miles", "bad_flight", "chain_of_equalities", "distinct", "self_join", "query_in_from",
    "exists", "in_of_two_columns", "join_for_in", "not_exists_decided_by_the_view", "not_exists_in_exists",
}  # fmt: skip
"""Views that decide some of their deletions alone."""


def prefer_rules(plan: MaintenancePlan) -> int:
    """Plans by rules first, those that only start with rules second."""
    return 2 if plan.strategy is not Strategy.RULES else int(not is_by_rules(plan.facts))


def is_by_rules(facts: tuple[str, ...]) -> bool:
    return any(each.startswith("rules: ") for each in facts)


def test_plans_by_rules_give_the_bag_of_the_query(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rules of a refresh as one step, wherever no row of the view occurs twice; also where another plan would be
    chosen. Several tables change at once, mostly."""
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.reading", prefer_rules)
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.checks_whole_tables", lambda plan: False)
    done: Counter[str] = Counter()
    for case in cases_by_rules():
        for each in (replace(case, changes_by_key=True), replace(case, changes_by_key=False)):
            try:
                outcome = check_case(database, replace(each, is_trusted=True))
            except Disagreement as error:
                pytest.fail(str(error))
            done.update(
                "by rules" for one in outcome.refreshes if is_by_rules(one.facts) and not one.violation
            )
            done.update(rule for one in outcome.refreshes for rule in rules_in(one.facts))
            if is_set_operation(case.text):
                done.update("set operations by rules" for one in outcome.refreshes if is_by_rules(one.facts))
    print(f"\n{dict(done)}")
    assert done["by rules"] > 4 * KEYED_VIEWS
    assert done["set operations by rules"] > 2 * KEYED_VIEWS
    assert min(done[word] for word in ("del", "old_upd", "new_upd", "ins")) > KEYED_VIEWS


def is_set_operation(text: str) -> bool:
    return isinstance(parse_sql(text), (exp.SetOperation, exp.Subquery))


def rules_in(facts: tuple[str, ...]) -> Iterator[str]:
    """The kinds of rules that ran."""
    for fact in facts:
        if fact.startswith("rules: "):
            for name in fact.removeprefix("rules: ").split(", "):
                yield next(word for word in ("del", "old_upd", "new_upd", "ins") if name.startswith(word))


def cases_by_rules() -> Iterator[Case]:
    trusted = with_trust(WITH_MORE_TABLES)
    for text in TEXTS.values():
        yield from (case_for_view(trusted, text, SEED + seed) for seed in range(2))
    for number in range(KEYED_VIEWS):
        seed = SEED * 100_003 + number
        schema = TABLES if number % 4 == 0 else TRUSTED_TABLES
        yield case_for_view(
            schema, random_keyed_select(random.Random(seed)), seed, breaks_constraints=number % 16 == 0
        )
        yield set_operation_case(seed, number % 2 == 0)


def set_operation_case(seed: int, is_typed: bool) -> Case:
    schema = TRUSTED_TYPED_TABLES if is_typed else TRUSTED_TABLES
    return case_for_view(schema, random_set_operation(random.Random(seed), is_typed), seed)


def mutants() -> dict[str, tuple[Any, str, Any]]:
    """Ways to break the plan by rules."""
    table_read, known = Derivation.table_read, plan_rules._knows_the_view
    across, relation = limited_sql.across, plan_rules._Fused._part

    def only_now(self: Derivation, table: Any, state: State, *given: Any) -> Any:
        return table_read(self, table, State.NEW, *given)

    def only_before(self: Derivation, table: Any, state: State, *given: Any) -> Any:
        return table_read(self, table, State.OLD, *given)

    def only_losses(self: Any, table: Any, state: State) -> str:
        return relation(self, table, State.REMOVED if State.REMOVED in self.kinds[table.object_id] else state)

    def along_every_comparison(conditions: Any, found: Any, onto: Any = None) -> Any:
        operators = (exp.NEQ, exp.LT, exp.GTE)
        equal = [
            exp.EQ(this=each.this, expression=each.expression) if isinstance(each, operators) else each
            for each in conditions
        ]
        return across(equal, found, onto)

    return {
        "tables are read as they are now": (Derivation, "table_read", only_now),
        "tables are read as they were": (Derivation, "table_read", only_before),
        "losses for gains": (plan_rules._Fused, "_part", only_losses),
        "rows are not looked up again": (Action, "checks_of_tables", property(lambda self: ())),
        "the view is never asked": (plan_rules, "_knows_the_view", lambda rule, action: True),
        "what a deletion finds was in the view": (
            plan_rules, "_knows_the_view", lambda rule, action: known(rule, action) or rule.effect is Effect.DELETE,
        ),
        "what an insertion finds is new": (
            plan_rules, "_knows_the_view", lambda rule, action: known(rule, action) or rule.effect is Effect.INSERT,
        ),
        "limits along every comparison": (limited_sql, "across", along_every_comparison),
        "the other sides are not asked": (derive._Derivation, "_checks", lambda *given, **more: []),
        "the other sides of insertions are not asked": (derive._Derivation, "_comes_in", lambda *given, **more: []),
        "the other sides of deletions are not asked": (derive._Derivation, "_stays_out", lambda *given, **more: []),
    }  # fmt: skip


@pytest.mark.parametrize("name", mutants())
def test_a_broken_plan_by_rules_is_noticed(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.reading", prefer_rules)
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.checks_whole_tables", lambda plan: False)
    monkeypatch.setattr(*mutants()[name])
    for number, case in enumerate(mutation_cases()):
        try:
            check_case(database, replace(case, is_trusted=True))
        except Disagreement:
            print(f"\n{name}: noticed by case {number + 1}")
            return
    pytest.fail(f"{name}: not noticed")


def mutation_cases() -> Iterator[Case]:
    trusted = with_trust(WITH_MORE_TABLES)
    for seed in range(2):
        yield from (case_for_view(trusted, text, SEED + seed) for text in TEXTS.values())
    for number in range(300):
        yield case_for_view(TRUSTED_TABLES, random_keyed_select(random.Random(number)), number)
        yield set_operation_case(number, number % 2 == 0)


def test_plans_that_start_with_rules_give_the_bag_of_the_query(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the view alone decides first, the rest by its changes; also where another plan would be chosen."""
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.reading", prefer_rules)
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.checks_whole_tables", lambda plan: False)
    monkeypatch.setattr("viewkeeper.maintenance.build_plan.plan_by_rules", lambda *given: None)
    done: Counter[str] = Counter()
    for case in planned_cases():
        for each in (replace(case, changes_by_key=True), replace(case, changes_by_key=False)):
            try:
                outcome = check_case(database, replace(each, is_trusted=True))
            except Disagreement as error:
                pytest.fail(str(error))
            done.update(one.strategy.value for one in outcome.refreshes)
    print(f"\n{dict(done)}")
    assert done["rules"] > 100


def planned_cases() -> Iterator[Case]:
    for name, text in TEXTS.items():
        if name in DECIDING:
            yield from (case_for_view(WITH_MORE_TABLES, text, SEED + seed) for seed in range(3))
    for number in range(PLANNED_VIEWS):
        seed = SEED * 100_003 + number
        text = random_selects(random.Random(seed))
        yield case_for_view(TABLES, text, seed, breaks_constraints=number % 5 == 0)


# ---------------------------------------------------------------------------- duplicates

NO_DUPLICATES_FOUND = {"key_half_null"}
"""Views that are said to be able to hold duplicates, in which none were found: two rows with NULL in one column and the same
value in the other are rare."""


def test_views_without_duplicates_have_none_and_the_others_have_some(
    database: duckdb.DuckDBPyConnection,
) -> None:
    not_found, looked_at = set(), Counter[bool]()
    for name, text in TEXTS.items():
        found = view_and_analysis(database, case_for_view(WITH_MORE_TABLES, text, SEED))
        assert found is not None
        possible = found[1].duplicates.possible
        seen = False
        for seed in range(LONGEST_SEARCH if possible else STREAMS):
            for rows in answers(database, case_for_view(WITH_MORE_TABLES, text, SEED + seed)):
                looked_at[possible] += 1
                seen = seen or len(set(rows)) < len(rows)
            if seen:
                break
        assert possible or not seen, f"{name} has duplicates"
        if possible and not seen:
            not_found.add(name)
    print(
        f"\n{looked_at[False]} states of views without duplicates, {len(not_found)} searches without success"
    )
    assert not_found == NO_DUPLICATES_FOUND


# ---------------------------------------------------------------------------- safety is not claimed too rarely

NO_COUNTEREXAMPLE = {("mixed_set_operators", "ff")}
"""References that are said not to be safe, for which no data was found on which that matters: four tables must agree on a
value that two rows of one of them have."""


def taken_for_safe(analysis: ViewAnalysis, verdict: ReferenceVerdict) -> ViewAnalysis:
    is_negative = verdict.reference.place is Place.NEGATIVE
    forged = replace(verdict, i_safe=True) if is_negative else replace(verdict, safe=True)
    others = tuple(forged if each is verdict else each for each in analysis.references)
    return replace(analysis, references=others)


def test_rules_that_take_a_reference_for_safe_go_wrong(database: duckdb.DuckDBPyConnection) -> None:
    not_found, searched, streams = set(), 0, 0
    for name, text in TEXTS.items():
        found = view_and_analysis(database, case_for_view(WITH_MORE_TABLES, text, SEED))
        assert found is not None
        view, analysis = found
        if analysis.duplicates.possible:
            continue
        names = tuple(column.name for column in view.columns)
        for verdict in analysis.references:
            adds = adds_to_view(analysis.selection, verdict.reference.select)
            if (
                verdict.decides_deletions or not adds
            ):  # what leaves the right of EXCEPT is always looked up again
                continue
            searched += 1
            forged = taken_for_safe(analysis, verdict)
            rules = derive_rules(view.name, view.stem, names, forged, DECLARED)
            checked = [
                action.certainty
                for rule in rules.rules
                for action in rule.actions
                if str(rule.triggers[0].table) == str(verdict.reference.table)
            ]
            assert {Certainty.BY_KEY, Certainty.BLOCKED, Certainty.BY_THE_VIEW} & set(checked)
            run = RuleRun(database, view, rules)
            for seed in range(LONGEST_SEARCH):
                streams += 1
                if goes_wrong(database, run, case_for_view(WITH_MORE_TABLES, text, SEED + seed)):
                    break
            else:
                not_found.add((name, verdict.reference.scan.alias))
    print(f"\n{searched} references, {streams} streams, without a counterexample: {sorted(not_found)}")
    assert searched > 15
    assert not_found == NO_COUNTEREXAMPLE
