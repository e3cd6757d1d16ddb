"""The random cases bite: each rule is broken in turn, and some case must notice.

With -s the number of cases is shown that it took.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from tests.properties.regressions import REGRESSIONS
from viewkeeper.algebra import moments
from viewkeeper.errors import QueryFailedError
from viewkeeper.maintenance import build_plan
from viewkeeper.maintenance.differential import bounds, limits, top_view, updated_view
from viewkeeper.maintenance.differential.delta_rules import (
    affected,
    derived,
    generate,
    group,
    inner_join,
    outer_join,
    project,
    scan,
    semi_join,
    set_operation,
    window,
)
from viewkeeper.maintenance.differential.derivation import Change, Derivation, Signed
from viewkeeper.maintenance.kept_groups import InnerGroups
from viewkeeper.maintenance.plan import State, Strategy
from viewkeeper.sql.rendering import literal
from viewkeeper.testing import case_of, check_case, random_case

pytestmark = pytest.mark.timeout(0)

MOST_CASES = 150
"""Of those that have the construct."""

Patch = tuple[Any, str, Callable[..., Any]]


def _only_gains(rule: Callable[..., list[Signed]]) -> Callable[..., list[Signed]]:
    """Forgets what was there before."""
    return lambda *given: rule(*given)[:1]


def _none(*given: Any, **more: Any) -> list[Any]:
    return []


def _without_losses(derivation: Derivation, found: Any) -> list[Change]:
    return [each for each in _SCAN(derivation, found) if each.sign != literal(-1)]


def _all_now(derivation: Derivation, relation: Any, state: State, given: Any = None) -> Any:
    return _ROWS(derivation, relation, State.NEW, given)


def _nothing_lost(view: Any, top: Any, net: str, old: str) -> exp.Select:
    return _LOST(view, top, net, old).where(exp.false())


def _never_null(conditions: Any, found: limits.Limits, onto: Any = None) -> limits.Limits:
    return {key: replace(values, or_null=False) for key, values in _ACROSS(conditions, found, onto).items()}


def _keys_never_null(keys: Any, found: str) -> limits.Limits:
    return _never_null((), _KEY_LIMITS(keys, found))


def _through_everything(join: Any, found: limits.Limits) -> limits.Limits:
    return found


def _old_bound(self: bounds.BoundRelations, bound: Any, old: exp.Expr, count: Any) -> exp.Expr:
    found = _NEW_VALUE(self, bound, old, count)
    return found.args["false"]  # type: ignore[no-any-return]


def _came_is_all(self: bounds.BoundRelations, bound: Any, old: exp.Expr, count: Any) -> exp.Expr:
    return _NEW_VALUE(self, bound, exp.null(), count)


def _bits_stay(odd: Any, count: exp.Expr, groups: str, old: str) -> exp.Expr:
    return updated_view.column(odd.name, old)


def _no_products(one: Any, other: Any) -> exp.Expr:
    return _CENTRED(one, one)


def _no_rows(*given: Any) -> Any:
    frame = _AFFECTED_ROWS(*given)
    return replace(frame, select=frame.select.where(exp.false()))


def _left_only(derivation: Derivation, query: Any) -> list[Signed]:
    return derivation.signed(query.left)


_SCAN, _ROWS, _LOST = scan.changes, Derivation.rows, top_view._lost
_ACROSS, _NEW_VALUE, _CENTRED = limits.across, bounds.BoundRelations.new_value, moments._centred
_KEY_LIMITS, _AFFECTED_ROWS = affected.key_limits, affected.affected_rows
_READING = Derivation.reading

MUTATIONS: dict[str, tuple[set[str], list[Patch]]] = {
    "scan: no losses": ({"where"}, [(scan, "changes", _without_losses)]),
    "derived: no changes": ({"subquery in from", "cte"}, [(derived, "changes", _none)]),
    "generate: no changes": ({"explode array", "explode sequence"}, [(generate, "changes", _none)]),
    "project: gains only": ({"union all"}, [(project, "signed", _only_gains(project.signed))]),
    "inner join: others always new": ({"inner join", "self-join"}, [(Derivation, "rows", _all_now)]),
    "outer join: partners forgotten": ({"left join", "right join"}, [(outer_join, "changes_by_partners", _none)]),
    "full join: lone rows forgotten": ({"full join"}, [(outer_join, "_without_partners", _none)]),
    "semi join: partners forgotten": (
        {"exists", "not exists", "semi join", "anti join"},
        [(semi_join, "changes_by_partners", _none)],
    ),
    "group: the old one stays": ({"subquery in having", "grouped subquery"}, [(group, "signed", _only_gains(group.signed))]),
    "window: the old ones stay": ({"first of each"}, [(window, "signed", _only_gains(window.signed))]),
    "set operation: the right side forgotten": (
        {"intersect", "except", "intersect all", "except all", "union all"},
        [(set_operation, "signed", _left_only)],
    ),
    "top rows: never filled up": ({"limit"}, [(top_view, "_lost", _nothing_lost)]),
    "bounds: only what came": (
        {"min", "max", "bit_and", "bit_or"},
        [(bounds.BoundRelations, "new_value", _came_is_all)],
    ),
    "odd bits: nothing turns them": ({"bit_xor"}, [(updated_view, "_new_odd_bits", _bits_stay)]),
    "limits: NULLs forgotten": (
        {"null-safe equality", "group by", "rank"},
        [(limits, "across", _never_null), (inner_join, "across", _never_null), (affected, "key_limits", _keys_never_null)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    constructs, patches = MUTATIONS[name]
    for place, attribute, broken in patches:
        monkeypatch.setattr(place, attribute, broken)
    tried = 0
    with duckdb.connect(config={"threads": 1}) as database:
        for seed in range(700_000, 800_000):
            case = random_case(seed)
            if not case.constructs & constructs:
                continue
            tried += 1
            try:
                check_case(database, case)
            except QueryFailedError:
                continue
            except AssertionError:
                print(f"\n{name}: noticed by case {tried}")
                return
            if tried == MOST_CASES:
                pytest.fail(f"{name}: not noticed by {tried} cases")


@pytest.mark.parametrize("bound", ["min", "max", "bit_and", "bit_or"])
def test_bounds_that_are_never_read_again_are_noticed(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random changes seldom take away just the least of a group that stays; this one does."""
    case = case_of(
        "CREATE TABLE t (k INT, v INT)",
        f"SELECT k, {bound}(v) AS v FROM t GROUP BY k",
        [{"t": [(1, 1), (1, 2), (1, 5)]}, {"t": [(1, 2)]}],
    )
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(bounds.BoundRelations, "new_value", _old_bound)
        with pytest.raises(AssertionError, match="the view is not what its query gives"):
            check_case(database, case)


@pytest.mark.parametrize("moment", ["covar_pop", "covar_samp", "corr"])
def test_moments_without_products_are_noticed(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random groups are mostly too small to have a covariance other than 0; this one is not."""
    case = case_of(
        "CREATE TABLE t (k INT, x INT, y INT)",
        f"SELECT k, {moment}(x, y) AS v FROM t GROUP BY k",
        [{"t": [(1, 1, 9), (1, 2, 7), (1, 4, 8)]}, {"t": [(1, 1, 9), (1, 2, 7), (1, 6, 2)]}],
    )
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(moments, "_centred", _no_products)
        with pytest.raises(AssertionError, match="the view is not what its query gives"):
            check_case(database, case)


def test_groups_that_having_leaves_out_are_not_taken_for_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT k, sum(v) AS total FROM t GROUP BY k HAVING count(*) > 1",
        [{"t": [(1, 1), (2, 1), (2, 2)]}, {"t": [(1, 1), (1, 5), (1, 6), (2, 2)]}],
    )
    with duckdb.connect(config={"threads": 1}) as database:
        (refresh,) = check_case(database, case).refreshes
        assert refresh.strategy is Strategy.DIFFERENTIAL
        monkeypatch.setattr(updated_view, "affected_rows", _no_rows)
        with pytest.raises(AssertionError, match="the view is not what its query gives"):
            check_case(database, case)


def test_limits_by_rows_of_another_state_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of b leads to another row of c than before. What the new row of a finds with b as it was needs the c of that time."""
    case = case_of(
        "CREATE TABLE a (id INT, b INT); CREATE TABLE b (id INT, c INT); CREATE TABLE c (id INT, x INT)",
        "SELECT a.id, c.x FROM a JOIN b ON b.id = a.b JOIN c ON c.id = b.c",
        [
            {"a": [(1, 1)], "b": [(1, 1)], "c": [(1, 10), (2, 20)]},
            {"a": [(1, 1), (2, 1)], "b": [(1, 2)], "c": [(1, 10), (2, 20)]},
        ],
    )
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(Derivation, "reading", lambda self, _: _READING(self, lambda scan: State.NEW))
        with pytest.raises(AssertionError, match=r"the view is not what its query gives|changes are stored"):
            check_case(database, case)


def test_limits_through_the_inner_side_of_an_outer_join_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few random views have a limit on NULLs that an outer join makes; this one does."""
    name = "the inner side of an outer join is not limited to the affected partitions"
    (case,) = [each for each in REGRESSIONS if each.name == name]
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(limits, "_through_nulls", _through_everything)
        with pytest.raises(AssertionError, match="the view is not what its query gives"):
            check_case(database, case)


@pytest.mark.parametrize("where", ["under a join", "in a union", "as a scalar", "of a window under a join"])
def test_old_sums_that_are_computed_again_are_noticed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without kept groups, and without the reason to recompute, an old row is looked for by bits that it never had."""
    name = f"a sum of DOUBLE {where} has other bits when it is computed again"
    (case,) = [each for each in REGRESSIONS if each.name == name]
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(InnerGroups, "order_dependent", None)
        monkeypatch.setattr(build_plan, "_order_dependent", lambda query: None)
        with pytest.raises(AssertionError, match=r"the view is not what its query gives|changes are stored"):
            check_case(database, case)


def test_what_is_shown_of_groups_that_are_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT k, count(v) / count(*) AS share FROM t GROUP BY k",
        [{"t": [(1, 1), (2, None)]}, {"t": [(2, None)]}],
    )
    with duckdb.connect(config={"threads": 1}) as database:
        check_case(database, case)
        monkeypatch.setattr(updated_view, "_stays", lambda *given: None)
        with pytest.raises(AssertionError, match="division by zero"):
            check_case(database, case)


def test_unbroken_rules_are_not_noticed() -> None:
    """The control: the same cases pass when nothing is broken."""
    with duckdb.connect(config={"threads": 1}) as database:
        for seed in range(700_000, 700_020):
            with suppress(QueryFailedError):
                check_case(database, random_case(seed))
