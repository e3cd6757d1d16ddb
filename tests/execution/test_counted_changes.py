"""Oracle: change sets that are counted without Spark are those of the generated SQL, whatever columns are taken for a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.maintenance.helpers import columns, to_duckdb
from viewkeeper.execution.counted_changes import CountedChanges, can_be_counted
from viewkeeper.generated_names import CHANGE_KIND, COPY_NUMBER, FILE, POSITION, SIGN
from viewkeeper.maintenance.bag_changes import signed_changes
from viewkeeper.sources.arrow_types import arrow_schema

COLUMNS = columns({"a": "INT", "b": "STRING", "x": "DOUBLE"})
NAMES = [each.name for each in COLUMNS]
SCHEMA = arrow_schema(COLUMNS)
SQL = to_duckdb(signed_changes("v_delta", "v_alike", COLUMNS))
Row: TypeAlias = tuple[int | None, str | None, float | None]
Bag: TypeAlias = list[Row]

rows = st.tuples(
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, "", "x"]),
    st.sampled_from([None, 0.5, float("nan")]),
)
bags = st.lists(rows, max_size=8)
keys = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def table(bag: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in bag], schema=SCHEMA)


def signed(old: Bag, new: Bag, passing: Bag) -> pa.Table:
    """Signed rows that make one bag of another; some come and go again."""
    every = [*old, *new, *passing, *passing]
    signs = [-1] * len(old) + [1] * len(new) + [1] * len(passing) + [-1] * len(passing)
    return table(every).append_column(SIGN, pa.array(signs, pa.int32()))


def with_places(rows: pa.Table) -> pa.Table:
    """Rows as they are found in two files."""
    files = [f"file-{at % 2}" for at in range(rows.num_rows)]
    positions = [at // 2 for at in range(rows.num_rows)]
    return rows.append_column(FILE, pa.array(files, pa.string())).append_column(
        POSITION, pa.array(positions, pa.int64())
    )


def bag_of(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


@settings(max_examples=200, deadline=None)
@given(bags, bags, bags, keys)
@example([(1, "x", 0.5)] * 2, [(1, "x", 0.5)], [], ["a"])
@example([(None, "x", 0.5)], [(None, "", 0.5)], [], ["a"])
@example([(1, "x", 0.5), (1, "", 0.5)], [(1, "x", 0.5)], [], ["a"])
def test_counted_change_sets_are_those_of_the_sql(
    database: duckdb.DuckDBPyConnection, old: Bag, new: Bag, passing: Bag, key: list[str]
) -> None:
    delta, view = signed(old, new, passing), with_places(table(old))
    changes = CountedChanges.of(delta, COLUMNS)
    is_decided = changes.decided_by(key, view.select([*key, FILE, POSITION]))
    before = changes.copies_in(view)
    going = [max(0, -count) for count in changes.counts]
    assert [b for b, decided in zip(before, is_decided, strict=True) if decided] == [
        g for g, decided in zip(going, is_decided, strict=True) if decided
    ]
    with database.cursor() as cursor:
        cursor.register("v_delta", delta)
        cursor.register("v_alike", view.select(NAMES))
        expected = cursor.sql(SQL).to_arrow_table()
    found = changes.change_set(before)
    assert found.column_names == [*NAMES, COPY_NUMBER, CHANGE_KIND]
    assert bag_of(found) == bag_of(expected.cast(found.schema))


@settings(max_examples=100, deadline=None)
@given(bags, bags, keys)
def test_places_of_decided_rows_are_those_of_the_rows_that_go(old: Bag, new: Bag, key: list[str]) -> None:
    """Wherever a key decides, the rows at the places that it gives are the very rows that go."""
    view = with_places(table(old))
    changes = CountedChanges.of(signed(old, new, []), COLUMNS)
    found = view.select([*key, FILE, POSITION])
    decided = [at for at, is_so in enumerate(changes.decided_by(key, found)) if is_so]
    going = changes.at(decided).going_with_places(key, found)
    at_places = {(row[FILE], row[POSITION]): row for row in view.to_pylist()}
    meant = [at_places[row[FILE], row[POSITION]] for row in going.to_pylist()]
    assert len({(row[FILE], row[POSITION]) for row in meant}) == going.num_rows
    assert Counter(repr([row[name] for name in NAMES]) for row in meant) == Counter(
        repr([row[name] for name in NAMES]) for row in going.to_pylist()
    )
    gone = changes.at(decided)
    assert going.num_rows == sum(max(0, -count) for count in gone.counts)


def test_a_key_that_the_view_has_more_often_decides_nothing() -> None:
    changes = CountedChanges.of(signed([(1, "x", 0.5)], [(2, "x", 0.5)], []), COLUMNS)
    view = with_places(table([(1, "x", 0.5), (1, "y", 0.5)]))
    assert changes.decided_by(["a"], view) == [False, True]
    assert changes.decided_by(["a", "b"], view) == [True, True]


@pytest.mark.parametrize(
    ("data_type", "can"),
    [("STRING", True), ("DECIMAL(9,2)", True), ("DATE", True), ("TIMESTAMP", False), ("ARRAY<INT>", False)],
)
def test_types_whose_rows_are_left_to_spark(data_type: str, can: bool) -> None:
    assert can_be_counted(columns({"a": "INT", "b": data_type})) is can
