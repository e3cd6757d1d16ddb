"""Checked cases: what they report, and that a wrong plan, a wrong limit and a missed violation are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import duckdb
import pytest

from viewkeeper.errors import QueryFailedError, UnsupportedError
from viewkeeper.maintenance.plan import MaintenancePlan, State, Strategy, WriteChangeSet
from viewkeeper.sql.binding import Column
from viewkeeper.sql.types import Simple
from viewkeeper.testing import Disagreement, agreement, case_of, check_case, shrunk
from viewkeeper.testing.changes import violated, without_violations
from viewkeeper.testing.duckdb_runner import TableState
from viewkeeper.testing.tables import read_schema

TABLES = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
STREAM = [{"t": [(1, 1), (2, None)]}, {"t": [(1, 5), (3, 1)]}, {"t": []}]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def test_an_outcome_names_the_strategy_of_every_refresh(database: duckdb.DuckDBPyConnection) -> None:
    outcome = check_case(database, case_of(TABLES, "SELECT v FROM t WHERE id > 1", STREAM))
    assert [each.strategy for each in outcome.refreshes] == [Strategy.DIFFERENTIAL] * 3
    assert outcome.strategies == {Strategy.DIFFERENTIAL}


def test_a_wrong_plan_is_seen_and_can_be_run_again(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "plan_refresh", _forgetful(agreement.plan_refresh))
    case = case_of(TABLES, "SELECT v FROM t", STREAM, name="a wrong plan")
    with pytest.raises(Disagreement) as caught:
        check_case(database, case)
    message = str(caught.value)
    assert "a wrong plan: the view is not what its query gives.\nmissing: 1\n  (5,)" in message
    assert "before: t = [(1, 1), (2, None)]\nafter: t = [(1, 5), (3, 1)]" in message
    assert eval(case.to_python()) == case

    def fails(each: object) -> bool:
        try:
            check_case(database, each)  # type: ignore[arg-type]
        except Disagreement:
            return True
        return False

    small = shrunk(case, fails)
    assert len(small.stream) == 2 and sum(len(rows["t"]) for rows in small.stream) == 1


def _forgetful(plan_refresh: Callable[..., MaintenancePlan]) -> Callable[..., MaintenancePlan]:
    """Plans whose change sets are empty."""

    def forget(*arguments: object) -> MaintenancePlan:
        plan = plan_refresh(*arguments)
        steps = tuple(
            replace(step, sql=f"SELECT * FROM ({step.sql}) WHERE FALSE")
            if isinstance(step, WriteChangeSet)
            else step
            for step in plan.steps
        )
        return replace(plan, steps=steps)

    return forget


def test_a_query_that_duckdb_does_not_take(database: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UnsupportedError, match="DuckDB does not take the query"):
        check_case(
            database,
            case_of(TABLES, "SELECT assert_true(v > 0) AS a, spark_partition_id() AS p FROM t", STREAM),
        )


def test_a_query_that_fails_on_the_rows(database: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(QueryFailedError, match="the query fails on random rows"):
        check_case(
            database, case_of(TABLES, "SELECT (SELECT u.v FROM t u WHERE u.id < 9) AS a FROM t", STREAM)
        )


def test_tables_in_schemas(database: duckdb.DuckDBPyConnection) -> None:
    tables = "CREATE TABLE a.t (id INT); CREATE TABLE b.t (id INT)"
    stream = [{"a.t": [(1,)], "b.t": []}, {"a.t": [(1,)], "b.t": [(1,), (1,)]}]
    check_case(database, case_of(tables, "SELECT x.id FROM a.t x JOIN b.t y ON x.id = y.id", stream))


def test_changes_by_key_and_as_a_bag() -> None:
    columns = (Column("id", Simple("INT"), False), Column("v", Simple("INT")))
    rows = [(1, 1), (2, 2), (3, 3)], [(1, 1), (2, 9), (4, 4)]
    by_key = TableState(columns, *rows, key=("id",))
    assert by_key.kinds == {State.DELETED, State.INSERTED, State.OLD_UPDATED, State.NEW_UPDATED}
    assert by_key.rows(State.BETWEEN) == [(1, 1)]
    assert by_key.rows(State.ADDED) == [(4, 4), (2, 9)]
    bag = TableState(columns, *rows)
    assert bag.kinds == {State.REMOVED, State.ADDED}
    assert sorted(bag.rows(State.REMOVED)) == [(2, 2), (3, 3)]
    repeated = TableState(columns, [(1, 1)], [(1, 1), (1, 1), (1, 2)], key=("id",))
    assert repeated.kinds == {State.INSERTED} and len(repeated.rows(State.INSERTED)) == 2


def test_violations_are_found_and_taken_out() -> None:
    schema = read_schema(f"{TABLES}; CREATE TABLE u (t INT REFERENCES t, x INT UNIQUE)")
    rows = {"t": [(1, 1), (1, 2)], "u": [(1, 1), (7, 2), (None, None), (None, None), (1, 1)]}
    assert violated(schema, rows) == {("t", "t_pk"), ("u", "u_t_fk"), ("u", "u_x_unique")}
    kept = without_violations(schema, rows)
    assert kept == {"t": [(1, 1)], "u": [(1, 1), (None, None), (None, None)]}
    assert not violated(schema, kept)
