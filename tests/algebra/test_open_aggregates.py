"""Aggregates that SQL leaves open: what they become, that this is an answer SQL allows, and what stays open."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

import duckdb
import pytest

from tests.sql.helpers import bind
from viewkeeper.algebra.from_query import OutsideAlgebra, read_algebra
from viewkeeper.algebra.nodes import Group, sql_of
from viewkeeper.algebra.open_aggregates import ties_broken, with_decided_aggregates
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import parse_sql
from viewkeeper.testing.duckdb_runner import to_duckdb


def aggregates_of(call: str, source: str = "orders") -> list[str] | str:
    query = bind(f"SELECT customer_id, {call} AS x FROM {source} GROUP BY customer_id")
    found = read_algebra(query, query.output_names)
    if isinstance(found, OutsideAlgebra):
        return found.reason
    assert isinstance(found.source, Group)
    return [
        sql_of(item.expression).replace("`orders`.", "").replace("`", "") for item in found.source.aggregates
    ]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("first(id)", "MIN(id)"),
        ("first(id, true)", "MIN(id)"),
        ("first(DISTINCT id)", "MIN(id)"),
        ("first_value(id) RESPECT NULLS", "MIN(id)"),
        ("any_value(id) FILTER (WHERE amount > 1)", "MIN(id) FILTER(WHERE amount > 1)"),
        ("last(id) FILTER (WHERE amount > 1) IGNORE NULLS", "MAX(id) FILTER(WHERE amount > 1)"),
        ("last_value(id IGNORE NULLS)", "MAX(id)"),
        ("collect_list(id)", "SORT_ARRAY(COLLECT_LIST(id))"),
        ("array_agg(DISTINCT id) FILTER (WHERE id > 1)", "SORT_ARRAY(ARRAY_AGG(DISTINCT id) FILTER(WHERE id > 1))"),
        ("collect_set(id)", "SORT_ARRAY(COLLECT_SET(id))"),
        (
            "max_by(id, amount)",
            "(MAX(STRUCT(amount AS _vk_order_0, id AS _vk_order_1)) FILTER(WHERE NOT amount IS NULL))._vk_order_1",
        ),
        (
            "min_by(id, amount) FILTER (WHERE id > 1 OR id < 0)",
            "(MIN(STRUCT(amount AS _vk_order_0, id AS _vk_order_1)) "
            "FILTER(WHERE (id > 1 OR id < 0) AND NOT amount IS NULL))._vk_order_1",
        ),
        ("mode(id)", "MODE(id, TRUE)"),
        ("mode(id, false)", "MODE(id, TRUE)"),
        ("mode(id, true)", "MODE(id, TRUE)"),
        ("mode() WITHIN GROUP (ORDER BY id DESC)", "MODE() WITHIN GROUP (ORDER BY id DESC)"),
        ("listagg(id, ',')", "LISTAGG(id, ',') WITHIN GROUP (ORDER BY id ASC)"),
        (
            "string_agg(DISTINCT id)",
            "CASE WHEN SIZE(SORT_ARRAY(COLLECT_LIST(DISTINCT id))) > 0 "
            "THEN ARRAY_JOIN(SORT_ARRAY(COLLECT_LIST(DISTINCT id)), '') END",
        ),
        (
            "listagg(DISTINCT id, ',') WITHIN GROUP (ORDER BY id DESC)",
            "LISTAGG(DISTINCT id, ',') WITHIN GROUP (ORDER BY id DESC)",
        ),
        (
            "listagg(id) WITHIN GROUP (ORDER BY amount DESC)",
            "LISTAGG(id) WITHIN GROUP (ORDER BY amount DESC, id ASC)",
        ),
        ("listagg(id) WITHIN GROUP (ORDER BY id DESC)", "LISTAGG(id) WITHIN GROUP (ORDER BY id DESC)"),
    ],
)  # fmt: skip
def test_what_one_aggregate_becomes(call: str, expected: str) -> None:
    assert aggregates_of(call) == [expected]


def test_several_share_one_order_of_rows() -> None:
    row = "STRUCT(id AS _vk_order_1, amount AS _vk_order_2)"
    assert aggregates_of("collect_list(id) AS ids, last(amount, true)") == [
        f"TRANSFORM(SORT_ARRAY(COLLECT_LIST({row}) FILTER(WHERE NOT id IS NULL)), _vk_element -> (_vk_element)._vk_order_1)",
        f"(MAX({row}) FILTER(WHERE NOT amount IS NULL))._vk_order_2",
    ]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("max_by(id, amount, 2)", "max_by picks any of several equally good values"),
        ("first(id, id > 1)", "first takes the value of whichever row comes first"),
        ("collect_list(id) RESPECT NULLS", "collect_list lists values in the order they come"),
        ("mode(DISTINCT id)", "mode picks any of several equally good values"),
        ("approx_percentile(id, 0.5)", "approx_percentile approximates, and how depends on the order of the rows"),
        (
            "first(map(id, 1))",
            "first takes the value of whichever row comes first, and what map makes may have no order to break ties by",
        ),
        (
            "first(CAST(id AS STRING COLLATE UTF8_LCASE))",
            "first takes the value of whichever row comes first, "
            "and STRING COLLATE UTF8_LCASE has no total order to break ties by",
        ),
        (
            "first(CAST(id AS VARIANT))",
            "first takes the value of whichever row comes first, and VARIANT has no total order to break ties by",
        ),
        (
            "collect_set(CAST(id AS STRING) COLLATE UTF8_LCASE)",
            "collect_set lists values in the order they come, and what collate makes may have no order to break ties by",
        ),
    ],
)  # fmt: skip
def test_what_stays_open(call: str, reason: str) -> None:
    assert aggregates_of(call) == reason


def test_a_column_that_is_computed_below_may_be_anything_that_is_made_there() -> None:
    inside = "(SELECT customer_id, map(id, 1) AS m, id + 1 AS n FROM orders)"
    assert "what map makes may have no order" in aggregates_of("first(m)", inside)
    assert "what map makes may have no order" in aggregates_of("first(n)", inside)
    assert len(aggregates_of("first(n)", "(SELECT customer_id, id + 1 AS n FROM orders)")) == 1


@pytest.mark.parametrize(
    "call",
    ["collect_list(id)", "max_by(id, amount)", "mode(id)", "listagg(id, ',')", "approx_percentile(id, 0.5)"],
)
def test_over_windows_they_stay_open(call: str) -> None:
    query = bind(f"SELECT id, {call} OVER (PARTITION BY customer_id) AS x FROM orders")
    assert isinstance(read_algebra(query, query.output_names), OutsideAlgebra)


def test_sentences() -> None:
    query = bind("SELECT customer_id, first(id) AS f, last(amount) AS l FROM orders GROUP BY customer_id")
    assert ties_broken(parse_sql(query.rendered)) == [
        "SQL leaves FIRST(`orders`.`id`), LAST(`orders`.`amount`) open: "
        "rows come in the order of `orders`.`id`, `orders`.`amount`"
    ]


# --------------------------------------------------------------------------------------- answers that SQL allows

Row = tuple[Any, ...]


def known(values: Iterator[Any]) -> list[Any]:
    return [each for each in values if each is not None]


def by(rows: Sequence[Row], place: int, best: Callable[..., Any]) -> Any:
    """Spark's max_by(column, y) and min_by: of rows that tie the last one that came."""
    ordered = [row for row in rows if row[2] is not None]
    wanted = best((row[2] for row in ordered), default=None)
    return next((row[place] for row in reversed(ordered) if row[2] == wanted), None)


MEANINGS: dict[str, Callable[[Sequence[Row]], Any]] = {
    "first(a)": lambda rows: rows[0][0] if rows else None,
    "last(b)": lambda rows: rows[-1][1] if rows else None,
    "first(b) IGNORE NULLS": lambda rows: (known(row[1] for row in rows) or [None])[0],
    "any_value(a, true)": lambda rows: (known(row[0] for row in rows) or [None])[0],
    "last(a) FILTER (WHERE b = 1)": lambda rows: ([None] + [row[0] for row in rows if row[1] == 1])[-1],
    "collect_list(a)": lambda rows: known(row[0] for row in rows) or None,
    "collect_list(b)": lambda rows: known(row[1] for row in rows) or None,
    "array_agg(a) FILTER (WHERE b = 1)": lambda rows: known(row[0] for row in rows if row[1] == 1) or None,
    "max_by(a, y)": lambda rows: by(rows, 0, max),
    "max_by(b, y)": lambda rows: by(rows, 1, max),
    "min_by(a, y)": lambda rows: by(rows, 0, min),
    "listagg(CAST(a AS STRING), ',')": lambda rows: ",".join(map(str, known(row[0] for row in rows))) or None,
}
"""What each aggregate gives for rows (a, b, y) that come in an order. Of no values DuckDB lists NULL."""

TOGETHER = [
    *([each] for each in MEANINGS),
    ["collect_list(a)", "collect_list(b)"],
    ["first(a)", "first(b) IGNORE NULLS", "last(b)"],
    ["max_by(a, y)", "max_by(b, y)"],
    ["collect_list(b)", "first(a)", "max_by(a, y)", "max_by(b, y)"],
    ["any_value(a, true)", "last(b)", "array_agg(a) FILTER (WHERE b = 1)"],
]


@pytest.mark.parametrize("calls", TOGETHER, ids="; ".join)
def test_the_answers_are_those_of_some_order_of_the_rows(calls: list[str]) -> None:
    """Also of several aggregates together."""
    tree = with_decided_aggregates(parse_sql(f"SELECT {', '.join(calls)} FROM t"))
    sql = to_duckdb(render(tree))
    generator = random.Random(1996)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (a INT, b INT, y INT)")
        for size in (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4):
            rows = [tuple(generator.choice((None, 1, 1, 2, 3)) for _ in range(3)) for _ in range(size)]
            database.execute("DELETE FROM t")
            for row in rows:
                database.execute("INSERT INTO t VALUES (?, ?, ?)", row)
            (answer,) = database.execute(sql).fetchall()
            allowed = [[MEANINGS[each](order) for each in calls] for order in permutations(rows)]
            assert list(answer) in allowed, (rows, sql)
