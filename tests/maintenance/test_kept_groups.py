"""Groups inside a query as hidden views: which there are, what they ask for, and the view over them.

That views over kept groups are right is shown in tests/properties, and on Spark in tests/integration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from benchmarks.tpch.queries import FOLDER, TPCH, view_query
from tests.support.golden import check_golden
from viewkeeper.algebra.nodes import Project
from viewkeeper.maintenance import kept_groups
from viewkeeper.maintenance.build_plan import ANY_CHANGE, plan_refresh, why_recomputed
from viewkeeper.maintenance.kept_groups import about_inner_groups, inner_groups, over_needed_groups, text_of
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.statements import RefreshPolicy
from viewkeeper.testing import Case, case_of, check_case_with_kept_groups, read_schema
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.kept_agreement import over_kept_groups

SHOP = read_schema("""
CREATE TABLE region (id INT PRIMARY KEY, name STRING);
CREATE TABLE sale (id INT PRIMARY KEY, region INT, x DECIMAL(8,2), weight DOUBLE);
""")
TPCH_TABLES = read_schema((FOLDER / "schema.sql").read_text(encoding="utf-8"))

TOTALS = "(SELECT region, sum(x) AS total, count(*) AS n FROM sale GROUP BY region)"
VIEWS = {
    "joined": f"SELECT r.name, s.total, s.n FROM region r JOIN {TOTALS} s ON s.region = r.id",
    "condition_on_groups": "SELECT region, sum(x) AS total FROM sale GROUP BY region HAVING min(x) < 3",
    "read_twice": f"WITH t AS {TOTALS} SELECT a.region FROM t a JOIN t b ON a.total > b.total",
    "groups_of_groups": f"SELECT r.name FROM region r JOIN (SELECT n, count(*) AS c FROM {TOTALS} t GROUP BY n) u ON u.c = r.id",
    "of_everything": "SELECT id FROM sale WHERE x > (SELECT avg(x) FROM sale)",
    "key_without_a_name": "SELECT r.name FROM region r JOIN "
    "(SELECT region % 2 AS parity, max(x) AS most FROM sale WHERE x > 0 GROUP BY region % 2) s ON s.parity = r.id",
    "distinct_rows": "SELECT r.name FROM region r LEFT JOIN (SELECT DISTINCT region FROM sale) s ON s.region = r.id",
}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def shop_view(database: duckdb.DuckDBPyConnection, text: str) -> ViewDefinition:
    return definition(database, Case(SHOP, text, ({},)))


@pytest.mark.parametrize(
    "name",
    [
        "joined",
        "condition_on_groups",
        "read_twice",
        "groups_of_groups",
        "of_everything",
        "key_without_a_name",
        "distinct_rows",
    ],
)
def test_split(database: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest, name: str) -> None:
    view = shop_view(database, VIEWS[name])
    chain = over_kept_groups(database, view)
    assert chain is not None
    shown = [VIEWS[name], "", *about_inner_groups(view)]
    for each in chain.in_order:
        columns = ", ".join(f"{column.name} {column.data_type}" for column in each.stored)
        shown += ["", f"-- {each.name} ({columns})", each.query.parsed.fragment.text]
    check_golden(request, "\n".join(shown), ".sql")


def test_neither_the_view_nor_its_hidden_view_reads_the_table_again(
    database: duckdb.DuckDBPyConnection,
) -> None:
    chain = over_kept_groups(database, shop_view(database, VIEWS["joined"]))
    assert chain is not None
    (hidden,) = chain.hidden
    states = {
        (str(view.name), str(read.name), read.state.value)
        for view, changed in ((hidden, "sale"), (chain.view, hidden.id))
        for step in plan_refresh(view, {changed: ANY_CHANGE}).steps
        for read in step.reads
    }
    assert states == {
        (str(hidden.name), "sale", "removed"),
        (str(hidden.name), "sale", "added"),
        (str(hidden.name), str(hidden.name), "old"),
        (str(chain.view.name), str(hidden.name), "removed"),
        (str(chain.view.name), str(hidden.name), "added"),
        (str(chain.view.name), "region", "new"),
        (str(chain.view.name), str(chain.view.name), "old"),
    }


def test_equal_groups_are_found_once_whatever_their_aliases(database: duckdb.DuckDBPyConnection) -> None:
    text = (
        "SELECT 1 AS one FROM (SELECT a.region AS k, sum(a.x) AS s FROM sale a GROUP BY a.region) p "
        "JOIN (SELECT b.region AS q, sum(b.x) AS r FROM sale b GROUP BY b.region) o ON p.s = o.r"
    )
    query = shop_view(database, text).algebra
    assert isinstance(query, Project)
    (groups,) = inner_groups(query)
    assert text_of(groups.query).references == {"`default`.`sale`": "sale"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT r.name FROM region r JOIN (SELECT region, count(DISTINCT x) AS c FROM sale GROUP BY region) s ON s.region = r.id",
            "the groups of sale by `sale_1`.`region` (COUNT(DISTINCT `sale_1`.`x`)) are not kept: "
            "COUNT(DISTINCT `sale_1`.`x`) cannot be updated from its old value",
        ),
        (
            "SELECT id FROM sale WHERE x = (SELECT max(x) FROM sale)",
            "the groups of sale (MAX(`sale_1`.`x`)) are not kept: MAX(`sale_1`.`x`) cannot be updated from its old value",
        ),
    ],
)
def test_groups_that_cannot_be_updated(database: duckdb.DuckDBPyConnection, text: str, reason: str) -> None:
    view = shop_view(database, text)
    assert about_inner_groups(view) == [reason]
    assert over_kept_groups(database, view) is None


def test_groups_with_sums_of_floats_are_kept_in_any_case(database: duckdb.DuckDBPyConnection) -> None:
    view = shop_view(database, VIEWS["joined"].replace("sum(x)", "sum(weight)"))
    (about,) = about_inner_groups(view)
    assert about.endswith(
        "are kept in a hidden view: SUM(`sale_1`.`weight`) depends on the order in which Spark adds"
    )
    reason = why_recomputed(view)
    assert reason is not None and reason.startswith("SUM(`") and "depends on the order" in reason
    assert why_recomputed(over_needed_groups(view)) is None
    chain = over_kept_groups(database, view, only_needed=True)
    assert chain is not None and why_recomputed(chain.view) is None


def test_groups_with_exact_sums_need_not_be_kept(database: duckdb.DuckDBPyConnection) -> None:
    view = shop_view(database, VIEWS["joined"])
    assert over_needed_groups(view) is view
    assert over_kept_groups(database, view, only_needed=True) is None


def test_the_groups_that_a_view_shows_are_its_own(database: duckdb.DuckDBPyConnection) -> None:
    assert (
        about_inner_groups(shop_view(database, "SELECT region, sum(x) AS s FROM sale GROUP BY region")) == []
    )


def test_views_that_are_recomputed_at_will_keep_nothing(database: duckdb.DuckDBPyConnection) -> None:
    view = shop_view(database, VIEWS["joined"])
    assert about_inner_groups(replace(view, policy=RefreshPolicy.FULL)) == []


CAN_KEEP = {
    "q02": 1, "q03": 1, "q10": 1, "q11": 2, "q13": 1, "q15": 1, "q17": 1, "q18": 2, "q20": 1, "q21": 1, "q22": 1,
}  # fmt: skip
"""How many hidden views the queries of TPC-H can have; whether they pay, the sizes say."""


def test_which_queries_of_tpch_can_keep_groups(database: duckdb.DuckDBPyConnection) -> None:
    found = {}
    for name in TPCH:
        view = definition(database, Case(TPCH_TABLES, view_query(name).sql, ({},)))
        about = about_inner_groups(view)
        kept = [each for each in about if "are kept" in each]
        if kept:
            found[name] = len(kept)
    assert found == CAN_KEEP


def test_a_condition_on_groups_that_got_lost_would_be_noticed(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT k, sum(v) AS total FROM t GROUP BY k HAVING count(*) > 1",
        [{"t": [(1, 1), (2, 1), (2, 2)]}, {"t": [(1, 1), (1, 5), (1, 6), (2, 2)]}],
    )
    outcome = check_case_with_kept_groups(database, case)
    assert outcome is not None and outcome.strategies == {Strategy.DIFFERENTIAL}
    monkeypatch.setattr(kept_groups, "inner_join", lambda sources, conditions: sources[0])
    with pytest.raises(AssertionError, match="the view is not what its query gives"):
        check_case_with_kept_groups(database, case)
