"""One view for each construct and each trap: how it is read, what is known of it, and what a change of its tables does.

The golden texts are for people: read the diff when a plan changes. That the plans are right is another matter: here with a
few random changes, in tests/properties with many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import pytest

from tests.support.golden import check_golden
from viewkeeper.maintenance.build_plan import ANY_CHANGE, ANY_KEYED_CHANGE, keyed_inputs, plan_refresh
from viewkeeper.maintenance.explain import explain_plan, explain_query
from viewkeeper.maintenance.plan import Strategy
from viewkeeper.maintenance.view_definition import ViewDefinition
from viewkeeper.sql.names import QualifiedName
from viewkeeper.testing import Case, case_for_view, check_case, read_schema
from viewkeeper.testing.agreement import definition
from viewkeeper.testing.views import CONSTRUCTS

SHOP = read_schema("""
CREATE TABLE customer (id INT PRIMARY KEY, name STRING, city STRING, is_member BOOLEAN);
CREATE TABLE product (id INT PRIMARY KEY, name STRING NOT NULL, category STRING, price DECIMAL(8,2));
CREATE TABLE orders (
  id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, day DATE, shipped DATE, note STRING
);
CREATE TABLE line (
  order_id INT NOT NULL REFERENCES orders, number INT NOT NULL, product INT NOT NULL REFERENCES product,
  quantity INT, discount DOUBLE, PRIMARY KEY (order_id, number)
);
CREATE TABLE employee (id INT PRIMARY KEY, boss INT, name STRING);
CREATE TABLE visit (customer INT, day DATE, pages INT);
""")


@dataclass(frozen=True)
class View:
    """A view, the constructs that it stands for (names of the random views', or of a trap), and how it is refreshed."""

    text: str
    stands_for: str
    strategy: Strategy = Strategy.DIFFERENTIAL
    is_open: bool = False
    """SQL leaves its answer open, so it cannot be compared with DuckDB's."""


RECOMPUTE = Strategy.RECOMPUTE
VIEWS = {
    # -- rows
    "filter": View(
        "SELECT * FROM customer WHERE is_member AND (city LIKE 'a%' OR NOT city IN ('x', 'y')) AND name IS NOT NULL",
        "star, where, boolean column, or, not, like, in list, is null",
    ),
    "expressions": View(
        "SELECT id, CASE WHEN price > 5 THEN 'dear' ELSE 'cheap' END AS kind, COALESCE(category, 'none') AS category, "
        "upper(name) AS name, price * 2 AS twice FROM product WHERE price BETWEEN 1 AND 9",
        "case, coalesce, string function, arithmetic, between",
    ),
    "division_by_what_is_there": View(
        "SELECT product, count(discount) / count(*) AS reduced FROM line GROUP BY product", "division"
    ),
    "a_column_that_is_not_shown_changes": View("SELECT city FROM customer", "duplicates"),
    # -- joins
    "join_of_four": View(
        "SELECT c.name, o.day, p.name AS product, l.quantity FROM line l JOIN orders o ON l.order_id = o.id "
        "JOIN customer c ON o.customer = c.id JOIN product p ON l.product = p.id",
        "inner join",
    ),
    "join_with_a_key": View(
        "SELECT l.order_id, l.number, p.name FROM line l, product p WHERE l.product = p.id AND p.category = 'a'",
        "comma join",
    ),
    "self_join": View(
        "SELECT e.name, b.name AS boss FROM employee e JOIN employee b ON e.boss = b.id", "self-join"
    ),
    "self_join_three_times": View(
        "SELECT a.id, c.id AS top FROM employee a JOIN employee b ON a.boss = b.id JOIN employee c ON b.boss = c.id",
        "self-join",
    ),
    "join_using": View(
        "SELECT day, v.customer, o.note FROM visit v JOIN orders o USING (customer, day)",
        "join using, coalesce",
    ),
    "non_equi_join": View(
        "SELECT a.id, b.id AS dearer FROM product a JOIN product b ON a.price < b.price AND a.category = b.category",
        "non-equi join",
    ),
    "cross_join": View("SELECT c.id, p.id AS product FROM customer c CROSS JOIN product p", "cross join"),
    "null_safe_join": View(
        "SELECT v.pages, o.id FROM visit v JOIN orders o ON v.day <=> o.day", "null-safe equality"
    ),
    "join_with_or": View(
        "SELECT o.id, v.pages FROM orders o JOIN visit v ON v.day = o.day OR v.day = o.shipped", "or in on"
    ),
    "join_with_values": View(
        "SELECT c.id, s.rank FROM customer c JOIN (VALUES ('a', 1), ('b', 2)) AS s(city, rank) ON c.city = s.city",
        "values",
    ),
    # -- outer joins
    "left_join": View(
        "SELECT c.id, c.name, o.id AS order_id FROM customer c LEFT JOIN orders o ON o.customer = c.id",
        "left join",
    ),
    "left_join_with_a_condition_on_one_side": View(
        "SELECT c.id, o.day FROM customer c LEFT JOIN orders o ON o.customer = c.id AND c.is_member AND o.note IS NULL",
        "left join, one-sided on",
    ),
    "left_join_then_where": View(
        "SELECT c.id FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
        "an outer join turned inner",
    ),
    "left_join_of_a_join": View(
        "SELECT c.id, p.name FROM customer c LEFT JOIN (orders o JOIN line l ON l.order_id = o.id "
        "JOIN product p ON p.id = l.product) ON o.customer = c.id",
        "left join",
    ),
    "left_join_always": View("SELECT c.id, p.id AS product FROM customer c LEFT JOIN product p ON TRUE", "constant on"),
    "right_join": View(
        "SELECT o.id, c.name FROM orders o RIGHT JOIN customer c ON o.customer = c.id", "right join"
    ),
    "full_join": View(
        "SELECT v.customer, v.pages, o.id FROM visit v FULL JOIN orders o ON v.customer = o.customer AND v.day = o.day",
        "full join",
    ),
    "full_join_of_groups_with_null_keys": View(
        "SELECT a.day, b.day AS other FROM (SELECT day FROM visit GROUP BY day) a "
        "FULL JOIN (SELECT day FROM orders GROUP BY day) b ON a.day = b.day",
        "full join, a row with NULLs",
    ),
    # -- semi and anti joins
    "exists": View(
        "SELECT city FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        "exists, EXISTS losing duplicates",
    ),
    "not_exists": View(
        "SELECT c.id FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.note <> 'x')",
        "not exists",
    ),
    "exists_by_inequality": View(
        "SELECT p.id FROM product p WHERE EXISTS (SELECT 1 FROM product q WHERE q.category = p.category AND q.price > p.price)",
        "exists, non-equi correlation",
    ),
    "in_subquery": View(
        "SELECT id FROM product WHERE id IN (SELECT product FROM line WHERE quantity > 3)", "in subquery"
    ),
    "correlated_in": View(
        "SELECT v.pages FROM visit v WHERE v.day IN (SELECT o.day FROM orders o WHERE o.customer = v.customer)",
        "correlated in",
    ),
    "not_in_with_nulls": View(
        "SELECT id FROM customer WHERE id NOT IN (SELECT customer FROM visit)", "not in subquery"
    ),
    "not_in_without_nulls": View(
        "SELECT id FROM customer WHERE id NOT IN (SELECT customer FROM orders)", "not in subquery"
    ),
    "semi_and_anti_join": View(
        "SELECT c.name FROM customer c LEFT SEMI JOIN orders o ON o.customer = c.id LEFT ANTI JOIN visit v ON v.customer = c.id",
        "semi join, anti join",
    ),
    "exists_in_exists": View(
        "SELECT c.id FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND "
        "EXISTS (SELECT 1 FROM line l WHERE l.order_id = o.id AND l.quantity > 2))",
        "exists",
    ),
    # -- values of subqueries
    "scalar_subquery": View(
        "SELECT id FROM product WHERE price > (SELECT avg(price) FROM product)", "scalar subquery"
    ),
    "correlated_scalar_subquery": View(
        "SELECT c.id, (SELECT max(o.day) FROM orders o WHERE o.customer = c.id) AS last_day FROM customer c",
        "correlated scalar subquery, subquery in select list",
    ),
    "count_of_nothing": View(
        "SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS orders FROM customer c",
        "correlated scalar subquery, count",
    ),
    "exists_under_or": View(
        "SELECT c.id FROM customer c WHERE c.is_member OR EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        "subquery under or, EXISTS under OR or CASE",
    ),
    "exists_in_case": View(
        "SELECT c.id, CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id) THEN 'buys' ELSE 'looks' END AS kind "
        "FROM customer c",
        "subquery in case, EXISTS under OR or CASE",
    ),
    "in_under_not": View(
        "SELECT c.id FROM customer c WHERE NOT (c.is_member AND c.id IN (SELECT customer FROM visit))",
        "subquery under not",
    ),
    "subquery_in_having": View(
        "SELECT customer, count(*) AS orders FROM orders GROUP BY customer HAVING count(*) > (SELECT min(pages) FROM visit)",
        "subquery in having",
    ),
    "correlated_subquery_in_having": View(
        "SELECT customer, count(*) AS orders FROM orders GROUP BY customer "
        "HAVING count(*) >= (SELECT count(*) FROM visit WHERE visit.customer = orders.customer)",
        "subquery in having",
    ),
    "in_a_grouped_subquery": View(
        "SELECT id, name FROM product WHERE id IN (SELECT product FROM line GROUP BY product HAVING sum(quantity) > 5)",
        "grouped subquery",
    ),
    # -- groups
    "counts_and_sums": View(
        "SELECT p.category, count(*) AS sold, sum(l.quantity) AS pieces, avg(l.quantity) AS average "
        "FROM line l JOIN product p ON p.id = l.product GROUP BY p.category",
        "group by, count, sum, avg, a NULL group kept twice",
    ),
    "least_and_greatest": View(
        "SELECT category, min(price) AS least, max(price) AS greatest FROM product GROUP BY category", "min, max"
    ),
    "groups_of_counts_and_sums": View(
        "SELECT customer, stddev_samp(pages) AS spread, covar_pop(pages, customer) AS together, "
        "bool_or(pages IS NULL) AS unknown FROM visit GROUP BY customer",
        "stddev, covariance, bool_or",
    ),
    "groups_read_again": View(
        "SELECT customer, count(DISTINCT day) AS days, sum(DISTINCT pages) AS pages, stddev_samp(pages) AS spread, "
        "max(pages) - min(pages) AS span FROM visit GROUP BY customer",
        "count distinct, sum distinct, stddev, aggregate in expression",
    ),
    "sums_of_doubles": View("SELECT product, sum(discount) AS discounts FROM line GROUP BY product", "sum"),
    "booleans_of_groups": View(
        "SELECT city, bool_and(is_member) AS every, bool_or(is_member) AS some FROM customer GROUP BY city",
        "bool_and, bool_or",
    ),
    "deviations_of_decimals": View(
        "SELECT category, stddev(price) AS spread, var_pop(price) AS variance FROM product GROUP BY category", "stddev"
    ),
    "correlation": View(
        "SELECT l.product, nullif(corr(l.quantity, p.price), CAST('NaN' AS DOUBLE)) AS together, "
        "covar_pop(l.quantity, p.price) AS covariance FROM line l JOIN product p ON p.id = l.product GROUP BY l.product",
        "corr, covariance",
    ),
    "bits": View(
        "SELECT customer, bit_or(pages) AS some, bit_and(pages) AS each, bit_xor(pages) AS odd FROM visit GROUP BY customer",
        "bit_and, bit_or, bit_xor",
    ),
    "bounds_under_having": View(
        "SELECT customer, max(day) AS last_day FROM visit GROUP BY customer HAVING min(pages) > 0", "having, min, max"
    ),
    "deviations_that_are_read_again": View(
        "SELECT product, var_samp(quantity + number) AS v FROM line GROUP BY product", "stddev"
    ),
    "hidden_key": View(
        "SELECT count(*) AS orders FROM orders GROUP BY month(day)",
        "hidden group key, group by expression, date function",
    ),
    "having": View("SELECT customer FROM orders GROUP BY customer HAVING count(*) > 1", "having"),
    "filter_clause": View(
        "SELECT product, count(*) FILTER (WHERE quantity > 2) AS many, sum(quantity) FILTER (WHERE discount IS NULL) AS plain "
        "FROM line GROUP BY product",
        "filter clause",
    ),
    "one_group": View("SELECT count(*) AS orders, count(note) AS notes FROM orders", "one group"),
    "one_group_that_is_read_whole": View("SELECT max(day) AS last_day FROM orders", "one group", RECOMPUTE),
    "group_of_groups": View(
        "SELECT orders, count(*) AS customers FROM (SELECT customer, count(*) AS orders FROM orders GROUP BY customer) o "
        "GROUP BY orders",
        "subquery in from",
    ),
    "rollup": View(
        "SELECT city, is_member, count(*) AS customers, grouping(city) AS is_total FROM customer GROUP BY ROLLUP (city, is_member)",
        "rollup, grouping",
    ),
    "cube": View("SELECT customer, day, sum(pages) AS pages FROM visit GROUP BY CUBE (customer, day)", "cube"),
    "grouping_sets": View(
        "SELECT customer, day, count(*) AS visits FROM visit GROUP BY GROUPING SETS ((customer), (day), ())",
        "grouping sets",
    ),
    # -- sets
    "distinct": View("SELECT DISTINCT city, is_member FROM customer", "distinct"),
    "union_all": View(
        "SELECT customer, day FROM visit UNION ALL SELECT customer, day FROM orders UNION ALL SELECT customer, shipped FROM orders",
        "union all, three operands",
    ),
    "union": View("SELECT customer FROM visit UNION SELECT id FROM customer", "union"),
    "intersect": View(
        "SELECT customer, day FROM visit INTERSECT SELECT customer, day FROM orders", "intersect, rules without a key", Strategy.RULES
    ),
    "intersect_all": View("SELECT day FROM visit INTERSECT ALL SELECT day FROM orders", "intersect all"),
    "except": View("SELECT id FROM customer EXCEPT SELECT customer FROM visit", "except, a row with NULLs"),
    "except_all": View("SELECT day FROM visit EXCEPT ALL SELECT day FROM orders", "except all"),
    # -- windows and order
    "window_sums": View(
        "SELECT customer, day, sum(pages) OVER (PARTITION BY customer) AS pages, "
        "count(*) OVER (PARTITION BY customer, day) AS visits, min(day) OVER (PARTITION BY customer) AS first_day FROM visit",
        "window sum, window count, window min",
    ),
    "ranks": View(
        "SELECT id, rank() OVER (PARTITION BY category ORDER BY price) AS place, "
        "dense_rank() OVER (PARTITION BY category ORDER BY price) AS class FROM product",
        "rank, dense_rank",
    ),
    "neighbours": View(
        "SELECT id, lag(day) OVER (PARTITION BY customer ORDER BY day, id) AS before, "
        "first_value(day) OVER (PARTITION BY customer ORDER BY day, id) AS first_day, "
        "sum(id) OVER (PARTITION BY customer ORDER BY day, id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two FROM orders",
        "lag, first_value, window frame",
    ),
    "window_over_all": View(
        "SELECT id, rank() OVER (ORDER BY price) AS place FROM product", "window over all", RECOMPUTE
    ),
    "first_of_each": View(
        "SELECT id, customer FROM (SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY day DESC) AS place "
        "FROM orders) o WHERE place = 1",
        "first of each, row_number",
        is_open=True,
    ),
    "top_rows": View("SELECT id, price FROM product ORDER BY price DESC, id LIMIT 3", "limit"),
    "top_rows_by_a_hidden_column": View(
        "SELECT name FROM product ORDER BY price DESC LIMIT 3", "limit", is_open=True
    ),
    "offset": View("SELECT id FROM product ORDER BY id LIMIT 3 OFFSET 1", "offset", RECOMPUTE),
    "join_with_top_rows": View(
        "SELECT l.order_id, p.id FROM (SELECT id FROM product ORDER BY price DESC, id LIMIT 2) p JOIN line l ON l.product = p.id",
        "limit",
    ),
    # -- sources
    "cte_used_twice": View(
        "WITH busy AS (SELECT customer, count(*) AS orders FROM orders GROUP BY customer) "
        "SELECT a.customer, b.customer AS other FROM busy a JOIN busy b ON a.orders = b.orders",
        "cte, cte used twice",
    ),
    "lateral_view": View(
        "SELECT id, x FROM orders LATERAL VIEW explode(array(day, shipped)) d AS x", "explode array"
    ),
    "explode_sequence": View(
        "SELECT p.category, n FROM line l JOIN product p ON p.id = l.product "
        "LATERAL VIEW explode(sequence(1, least(abs(l.quantity), 3) + 1)) s AS n",
        "explode sequence",
    ),
    "pivot": View(
        "SELECT * FROM (SELECT product, number, quantity FROM line) "
        "PIVOT (sum(quantity) AS pieces, max(quantity) AS most FOR number IN (1 AS first, 2 AS second))",
        "pivot",
    ),
    "unpivot": View("SELECT * FROM orders UNPIVOT (day_of FOR what IN (day AS Ordered, shipped))", "unpivot"),
    "qualify": View(
        "SELECT customer, day, pages FROM visit QUALIFY rank() OVER (PARTITION BY customer ORDER BY pages DESC) = 1",
        "qualify",
    ),
    "named_window": View(
        "SELECT customer, day, sum(pages) OVER w AS so_far, count(*) OVER w AS visits FROM visit "
        "WINDOW w AS (PARTITION BY customer ORDER BY day NULLS FIRST)",
        "named window",
    ),
    "common_table_expressions_in_a_row": View(
        "WITH sold AS (SELECT l.product, l.quantity, o.customer FROM line l JOIN orders o ON o.id = l.order_id), "
        "pieces AS (SELECT customer, sum(quantity) AS n FROM sold GROUP BY customer) "
        "SELECT customer, n * 2 AS twice FROM pieces",
        "SIMPLIFIED",
    ),
    # -- aggregates that SQL leaves open
    "first_value_of_a_group": View(
        "SELECT customer, first(day) AS a_day, any_value(day) AS same_day FROM visit GROUP BY customer", "first, any_value"
    ),
    "first_and_last_row_of_a_group": View(
        "SELECT customer, first(day) AS day, last(pages) FILTER (WHERE pages > 1) AS pages FROM visit GROUP BY customer",
        "first, last, filter clause",
    ),
    "the_row_with_the_latest_day": View(
        "SELECT customer, max_by(pages, day) AS pages, min_by(pages, day) AS first_pages FROM visit GROUP BY customer",
        "max_by, min_by",
    ),
    "lists_that_fit_each_other": View(
        "SELECT customer, array_join(collect_list(upper(note)), ',') AS notes, array_join(collect_list(note), ',') AS as_written, "
        "array_join(collect_set(note), ',') AS different FROM orders GROUP BY customer",
        "collect_list, collect_set",
    ),
    "texts_put_together": View(
        "SELECT customer, listagg(note, ',') AS notes, listagg(note, ',') WITHIN GROUP (ORDER BY day DESC) AS by_day "
        "FROM orders GROUP BY customer",
        "listagg",
    ),
    "the_most_frequent_value": View(
        "SELECT customer, mode(pages) AS pages FROM visit GROUP BY customer", "mode", is_open=True
    ),
    # -- recomputed
    "order_of_rows_matters": View(
        "SELECT customer, approx_percentile(pages, 0.5) AS pages FROM visit GROUP BY customer", "ORDERED", RECOMPUTE, True
    ),
    "another_value_each_time": View("SELECT id, rand() AS r FROM product", "NONDETERMINISTIC", RECOMPUTE, True),
}  # fmt: skip


def case_of(name: str, seed: int = 1) -> Case:
    return case_for_view(SHOP, VIEWS[name].text, seed)


def view_of(name: str) -> ViewDefinition:
    """The view with what is declared of its tables, as if all of it were relied on."""
    with duckdb.connect() as database:
        found = definition(database, replace(case_of(name), is_trusted=True))
    return replace(found, name=QualifiedName("default", "v"), id="v")


def test_every_construct_of_random_views_has_a_view_here() -> None:
    named = {each for view in VIEWS.values() for each in view.stands_for.split(", ")}
    assert not CONSTRUCTS - named
    assert len(VIEWS) > 60


@pytest.mark.parametrize("name", VIEWS)
def test_representative_view(name: str, request: pytest.FixtureRequest) -> None:
    view = view_of(name)
    parents = keyed_inputs(view)
    kinds = {
        each.object_id: ANY_KEYED_CHANGE if each.object_id in parents else ANY_CHANGE
        for each in view.query.inputs
    }
    plan = plan_refresh(view, kinds)
    assert plan.strategy is VIEWS[name].strategy, plan.reason
    changed = " or ".join(str(each.name) for each in view.query.inputs)
    lines = [VIEWS[name].text, "", *explain_query(view, SHOP.declarations)]
    check_golden(request, "\n".join([*lines, *explain_plan(plan, f"when {changed} changes")]), ".txt")


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if not view.is_open])
def test_representative_view_is_right_after_random_changes(name: str) -> None:
    with duckdb.connect() as database:
        for seed in range(3):
            check_case(database, case_of(name, seed))
