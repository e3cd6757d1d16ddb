"""Oracle: the generated SQL, run on DuckDB, does what a Python Counter does with random bags. (I3, I6)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.maintenance.helpers import columns, refresh_plan, to_duckdb
from viewkeeper.maintenance.bag_changes import difference, numbered_rows, signed_difference
from viewkeeper.maintenance.plan import ApplyChangeSet, WriteChangeSet

SHAPE = {"a": "INT", 'it`s "x"; --': "STRING"}
COLUMNS = columns(SHAPE)
Row: TypeAlias = tuple[int | None, str | None]
Bag: TypeAlias = list[Row]

rows = st.tuples(st.sampled_from([None, 0, 1, -7]), st.sampled_from([None, "", "x", "it's"]))
bags = st.lists(rows, max_size=12)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def fill(
    database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[object, ...]], extra: str = ""
) -> None:
    database.execute(f'CREATE OR REPLACE TABLE {table} (a INT, "it`s ""x""; --" VARCHAR{extra})')
    if rows:
        places = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
        database.execute(f"INSERT INTO {table} VALUES {places}", [value for row in rows for value in row])


def run(database: duckdb.DuckDBPyConnection, spark_sql: str) -> Bag:
    return database.execute(to_duckdb(spark_sql)).fetchall()


def numbered(bag: Bag) -> set[tuple[int | None, str | None, int]]:
    """The rows of a view's table: the copies of each row numbered from 1."""
    return {(*row, copy) for row, count in Counter(bag).items() for copy in range(1, count + 1)}


SIGNED = to_duckdb(signed_difference("n", "o", COLUMNS))
CHANGES = to_duckdb(difference("n", "o", COLUMNS))
LOAD = to_duckdb(numbered_rows("n", COLUMNS))
STEPS = refresh_plan(shape=SHAPE).steps
(WRITE,) = [to_duckdb(step.sql) for step in STEPS if isinstance(step, WriteChangeSet)]
(APPLY,) = [to_duckdb(step.sql) for step in STEPS if isinstance(step, ApplyChangeSet)]


@settings(max_examples=50, deadline=None)
@given(bags, bags)
@example([(None, None), (None, None), (1, "x")], [(None, None), (1, "x"), (1, "x")])
def test_signed_difference(database: duckdb.DuckDBPyConnection, new: Bag, old: Bag) -> None:
    fill(database, "n", new)
    fill(database, "o", old)
    found = database.execute(SIGNED).fetchall()
    wanted, held = Counter(new), Counter(old)
    assert sorted(found, key=repr) == sorted(
        (
            (*row, wanted[row] - held[row], held[row])
            for row in wanted.keys() | held.keys()
            if wanted[row] != held[row]
        ),
        key=repr,
    )


@settings(max_examples=50, deadline=None)
@given(bags, bags)
def test_bag_difference(database: duckdb.DuckDBPyConnection, new: Bag, old: Bag) -> None:
    fill(database, "n", new)
    fill(database, "o", old)
    found = database.execute(CHANGES).fetchall()
    inserted = {row for *row_, kind in found for row in [tuple(row_)] if kind == "insert"}
    deleted = {row for *row_, kind in found for row in [tuple(row_)] if kind == "delete"}
    assert len(inserted) + len(deleted) == len(found)
    assert inserted == numbered(new) - numbered(old)
    assert deleted == numbered(old) - numbered(new)


@settings(max_examples=30, deadline=None)
@given(bags)
def test_first_load(database: duckdb.DuckDBPyConnection, new: Bag) -> None:
    fill(database, "n", new)
    found = database.execute(LOAD).fetchall()
    assert len(found) == len(new)
    assert set(found) == numbered(new)


@settings(max_examples=30, deadline=None)
@given(st.lists(bags, min_size=2, max_size=4))
def test_a_view_follows_its_query_through_refreshes(
    database: duckdb.DuckDBPyConnection, history: list[Bag]
) -> None:
    """Load, then change set and merge for each new result: the same steps as the plan has, in one table."""
    fill(database, "totals", sorted(numbered(history[0]), key=repr), ", _vk_copy INT")
    for bag in history[1:]:
        fill(database, "totals_query", bag)
        database.execute('CREATE OR REPLACE VIEW totals_old AS SELECT * EXCLUDE ("_vk_copy") FROM totals')
        database.execute(f"CREATE OR REPLACE TABLE totals_changes AS {WRITE}")
        database.execute(APPLY)
        found = database.execute("SELECT * FROM totals").fetchall()
        assert len(found) == len(bag)
        assert set(found) == numbered(bag)


def test_no_change_writes_nothing(database: duckdb.DuckDBPyConnection) -> None:
    fill(database, "n", [(1, "x"), (None, None), (None, None)])
    fill(database, "o", [(None, None), (1, "x"), (None, None)])
    assert database.execute(SIGNED).fetchall() == []
    assert database.execute(CHANGES).fetchall() == []


def test_maps_with_the_same_entries_are_the_same(database: duckdb.DuckDBPyConnection) -> None:
    maps = columns({"m": "MAP<STRING, INT>"})
    database.execute("CREATE OR REPLACE TABLE n (m MAP(VARCHAR, INT))")
    database.execute("CREATE OR REPLACE TABLE o (m MAP(VARCHAR, INT))")
    database.execute("INSERT INTO n VALUES (MAP {'a': 1, 'b': NULL}), (MAP {'c': 3}), (NULL), (NULL)")
    database.execute("INSERT INTO o VALUES (MAP {'b': NULL, 'a': 1}), (MAP {'c': 4}), (NULL)")
    found = run(database, difference("n", "o", maps))
    assert sorted(found, key=repr) == sorted(
        [({"c": 3}, 1, "insert"), ({"c": 4}, 1, "delete"), (None, 2, "insert")], key=repr
    )
