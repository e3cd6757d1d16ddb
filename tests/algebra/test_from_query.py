"""Queries as trees: stable texts, and the reasons why a query is none yet."""

from __future__ import annotations

import pytest

from tests.sql.helpers import bind
from viewkeeper.algebra.from_query import OutsideAlgebra, read_algebra
from viewkeeper.algebra.nodes import tree_text


def tree_of(text: str) -> str:
    query = bind(text)
    found = read_algebra(query, query.output_names)
    return found.reason if isinstance(found, OutsideAlgebra) else tree_text(found)


def test_a_join_with_its_conditions_in_one_place() -> None:
    assert tree_of(
        "SELECT o.id, i.product FROM orders o JOIN items i ON o.id = i.order_id WHERE o.amount > 1 AND (i.product <> '')"
    ) == (
        "project `o`.`id` AS id, `i`.`product` AS product\n"
        "  join where `o`.`id` = `i`.`order_id` and `o`.`amount` > 1 and `i`.`product` <> ''\n"
        "    scan orders as o\n"
        "    scan items as i"
    )


def test_groups_name_their_keys_and_aggregates() -> None:
    assert tree_of(
        "SELECT customer_id AS c, sum(amount) + count(*) AS x, sum(amount) AS s FROM orders GROUP BY customer_id"
    ) == (
        "project `c` AS c, `s` + `_vk_aggregate_2` AS x, `s` AS s\n"
        "  group by `orders`.`customer_id` AS c: SUM(`orders`.`amount`) AS s, COUNT(*) AS _vk_aggregate_2\n"
        "    scan orders as orders"
    )


def test_a_key_that_is_not_shown_and_a_having() -> None:
    assert tree_of("SELECT count(*) AS n FROM orders GROUP BY customer_id HAVING sum(amount) > 1") == (
        "project `n` AS n having `_vk_aggregate_2` > 1\n"
        "  group by `orders`.`customer_id` AS _vk_key_1: COUNT(*) AS n, SUM(`orders`.`amount`) AS _vk_aggregate_2\n"
        "    scan orders as orders"
    )


def test_a_field_of_a_struct_is_no_column() -> None:
    """`t.s.x` could be the column x of the table t.s."""
    assert tree_of(
        "SELECT s.place.x AS x FROM (SELECT struct(id AS x) AS place FROM orders) AS s WHERE place.x > 1"
    ) == (
        "project `s`.`place`.`x` AS x\n"
        "  join where `s`.`place`.`x` > 1\n"
        "    query as s\n"
        "      project STRUCT(`orders`.`id` AS `x`) AS place\n"
        "        scan orders as orders"
    )


def test_distinct_is_a_group() -> None:
    assert tree_of("SELECT DISTINCT customer_id FROM orders").splitlines()[1] == (
        "  group by `orders`.`customer_id` AS customer_id: nothing"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1 + explode(array(id)) AS x FROM orders", "a function that makes rows stands inside an expression"),
        (
            "SELECT * FROM orders JOIN items PIVOT (sum(quantity) FOR product IN ('a'))",
            "it uses PIVOT or UNPIVOT after a join",
        ),
        ("SELECT * FROM orders PIVOT (stddev(amount) FOR customer_id IN (1))", "it pivots with stddev"),
        (
            "SELECT * FROM (SELECT id, id + 1 AS k FROM orders) PIVOT (sum(id) FOR k IN (1))",
            "the type of a column that it pivots by is not known from its table",
        ),
        (
            "SELECT v FROM orders UNPIVOT (v FOR n IN (ID, customer_id AS c))",
            "UNPIVOT writes a column otherwise than its table does, and gives it no alias",
        ),
        ("SELECT uuid() AS u FROM orders", "uuid gives another value each time"),
        ("SELECT current_date() AS d FROM orders", "current_date gives another value at another time"),
        ("SELECT my_function(id) AS d FROM orders", "my_function is no function of Spark"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "it uses TABLESAMPLE, or PIVOT or UNPIVOT in a special way"),
        ("SELECT id FROM orders LIMIT 1 + 1", "LIMIT or OFFSET is not a plain number"),
        ("WITH RECURSIVE x (id) AS (SELECT id FROM orders UNION ALL SELECT id + 1 FROM x) SELECT id FROM x", "it uses a recursive WITH clause"),
        ("SELECT o.id FROM orders o JOIN items i ON o.id IN (SELECT order_id FROM items)", "it has a subquery in the condition of a join"),
    ],
)  # fmt: skip
def test_reasons(text: str, reason: str) -> None:
    assert tree_of(text) == reason


@pytest.mark.parametrize(
    ("after_the_keys", "standard"),
    [
        ("GROUP BY customer_id, id WITH ROLLUP", "GROUP BY ROLLUP (customer_id, id)"),
        ("GROUP BY customer_id, id WITH CUBE", "GROUP BY CUBE (customer_id, id)"),
        (
            "GROUP BY customer_id, id GROUPING SETS ((customer_id, id), id, ())",
            "GROUP BY GROUPING SETS ((customer_id, id), id, ())",
        ),
        ("GROUP BY ROLLUP (1, 2)", "GROUP BY ROLLUP (customer_id, id)"),
    ],
)
def test_grouping_sets_in_all_ways_to_write_them(after_the_keys: str, standard: str) -> None:
    shown = "SELECT customer_id, id, count(*) AS n FROM orders"
    assert tree_of(f"{shown} {after_the_keys}") == tree_of(f"{shown} {standard}")


def test_order_by_all_and_limit_all() -> None:
    shown = "SELECT customer_id, id FROM orders"
    assert tree_of(f"{shown} ORDER BY ALL DESC LIMIT 3") == tree_of(
        f"{shown} ORDER BY customer_id DESC, id DESC LIMIT 3"
    )
    assert tree_of(f"{shown} LIMIT ALL") == tree_of(shown)


def test_an_aggregate_right_under_case() -> None:
    tree = tree_of(
        "SELECT customer_id, CASE WHEN customer_id = 1 THEN 0 ELSE max(id) END AS m FROM orders GROUP BY customer_id"
    )
    assert "MAX(`orders`.`id`) AS _vk_aggregate_1" in tree


def test_in_as_a_value_is_never_unknown() -> None:
    tree = tree_of("SELECT id, customer_id IN (SELECT order_id FROM items) AS f FROM orders")
    assert tree.splitlines()[0] == "project `orders`.`id` AS id, (NOT `found`.`_vk_value_1` IS NULL) AS f"
    negated = tree_of(
        "SELECT id, NOT (customer_id IN (SELECT order_id FROM items) OR id = 1) AS f FROM orders"
    )
    assert "`all_of`.`_vk_values` = `all_of`.`_vk_rows`" in negated
