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
        "    join where true\n"
        "      scan orders as orders"
    )


def test_a_key_that_is_not_shown_and_a_having() -> None:
    assert tree_of("SELECT count(*) AS n FROM orders GROUP BY customer_id HAVING sum(amount) > 1") == (
        "project `n` AS n having `_vk_aggregate_2` > 1\n"
        "  group by `orders`.`customer_id` AS _vk_key_1: COUNT(*) AS n, SUM(`orders`.`amount`) AS _vk_aggregate_2\n"
        "    join where true\n"
        "      scan orders as orders"
    )


def test_distinct_is_a_group() -> None:
    assert tree_of("SELECT DISTINCT customer_id FROM orders").splitlines()[1] == (
        "  group by `orders`.`customer_id` AS customer_id: nothing"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT id FROM orders UNION SELECT id FROM items", "it uses UNION"),
        ("SELECT o.id FROM orders o LEFT JOIN items i ON o.id = i.order_id", "it uses LEFT JOIN"),
        ("SELECT o.id FROM orders o LEFT SEMI JOIN items i ON o.id = i.order_id", "it uses LEFT SEMI JOIN"),
        ("WITH x AS (SELECT id FROM orders) SELECT id FROM x", "it uses a WITH clause"),
        ("SELECT id FROM (SELECT id FROM orders) AS x", "it has a subquery"),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM items)", "it has a subquery"),
        ("SELECT id, rank() OVER (ORDER BY id) AS r FROM orders", "it uses window functions"),
        ("SELECT id FROM orders LIMIT 3", "it uses LIMIT"),
        ("SELECT explode(array(id)) AS x FROM orders", "it uses a function that makes rows"),
        ("SELECT uuid() AS u FROM orders", "uuid gives another value at another time"),
        ("SELECT current_date() AS d FROM orders", "current_date gives another value at another time"),
        ("SELECT customer_id, sum(amount) AS s FROM orders GROUP BY ROLLUP (customer_id)", "it uses GROUPING SETS, ROLLUP, CUBE or GROUP BY ALL"),
        ("SELECT DISTINCT sum(amount) AS s FROM orders GROUP BY customer_id", "it uses DISTINCT over groups"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS p FROM orders", "it uses an aggregate that is not maintained yet"),
        ("SELECT nvl(id, 1) AS x FROM orders", "nvl is not known to mean the same in our rendering"),
        ("SELECT collect_list(id) AS x FROM orders GROUP BY customer_id", "it uses an aggregate that is not maintained yet"),
        ("SELECT first(id) AS x FROM orders GROUP BY customer_id", "it uses an aggregate that is not maintained yet"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "it reads a table in a special way"),
    ],
)  # fmt: skip
def test_reasons(text: str, reason: str) -> None:
    assert tree_of(text) == reason
