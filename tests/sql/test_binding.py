"""Our own reading of a query: every column with its table, golden for each kind of query."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tests.sql.helpers import HOSTILE_NAMES, bind, named_table, squeeze, table
from tests.support.golden import check_golden
from viewkeeper.sql.binding import BoundQuery
from viewkeeper.sql.names import QualifiedName, quote
from viewkeeper.sql.script import parse_sql


def shown(text: str, bound: BoundQuery) -> str:
    """The query, what it reads and what it gives, and our rendering."""
    lines = [f"-- {line}" for line in text.splitlines()]
    lines += [f"-- reads {found.name} as {found.relation}" for found in bound.inputs]
    lines += [f"-- gives {', '.join(bound.output_names)}", "", bound.rendered]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("SELECT * FROM orders", id="star"),
        pytest.param(
            "SELECT o.* FROM orders o JOIN customers c ON o.customer_id = c.id", id="star_of_a_table"
        ),
        pytest.param("SELECT * EXCEPT (placed) FROM orders", id="star_except"),
        pytest.param("SELECT ID, Orders.AMOUNT FROM ORDERS", id="any_case"),
        pytest.param("SELECT amount FROM orders WHERE amount > 10", id="filter"),
        pytest.param(
            """SELECT id FROM customers WHERE name IN ('it''s', "a""b", 'a""b', '\\n')""", id="strings"
        ),
        pytest.param(
            "SELECT name, amount FROM orders JOIN customers ON customer_id = customers.id", id="join"
        ),
        pytest.param(
            "SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b ON a.id = b.customer_id",
            id="self_join",
        ),
        pytest.param("SELECT * FROM orders JOIN items ON orders.id = order_id", id="star_of_a_join"),
        pytest.param("SELECT id, name, region FROM customers JOIN sales.orders USING (id)", id="using"),
        pytest.param("SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM items)", id="subquery"),
        pytest.param(
            "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id AND amount > 5)",
            id="correlated_exists",
        ),
        pytest.param(
            "SELECT id, (SELECT SUM(quantity) FROM items WHERE order_id = id) AS pieces FROM orders",
            id="correlated_scalar",
        ),
        pytest.param(
            "SELECT id FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.customer_id = o.customer_id)",
            id="correlated_same_table",
        ),
        pytest.param(
            "SELECT customer_id AS c, SUM(amount) AS total FROM orders GROUP BY c", id="group_by_alias"
        ),
        pytest.param("SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY 1", id="group_by_position"),
        pytest.param("SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY ALL", id="group_by_all"),
        pytest.param(
            "SELECT customer_id % 2 AS customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id",
            id="group_by_prefers_the_column",
        ),
        pytest.param(
            "SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id HAVING total > 100",
            id="having_alias",
        ),
        pytest.param(
            "SELECT id, amount * 2 AS dbl FROM orders ORDER BY dbl DESC, placed LIMIT 3", id="order_by"
        ),
        pytest.param("SELECT placed, SUM(amount) FROM orders GROUP BY placed WITH ROLLUP", id="rollup"),
        pytest.param("SELECT amount * 2 AS dbl, dbl + 1 AS more FROM orders", id="lateral_column_alias"),
        pytest.param(
            "SELECT id + 1 AS amount, amount * 2 AS c FROM orders", id="lateral_alias_yields_to_a_column"
        ),
        pytest.param("SELECT address.street, c.address.geo.lat AS lat FROM customers c", id="struct_fields"),
        pytest.param("SELECT customers.address.geo.lon FROM customers", id="struct_fields_of_a_table"),
        pytest.param("SELECT props['a'] AS a, tags[0] AS first FROM customers", id="map_and_array_items"),
        pytest.param("SELECT TRANSFORM(tags, t -> CONCAT(t, name)) AS x FROM customers", id="lambda"),
        pytest.param(
            "SELECT TRANSFORM(tags, (name, i) -> name) AS x FROM customers", id="lambda_hides_a_column"
        ),
        pytest.param(
            "SELECT FILTER(tags, t -> EXISTS(tags, u -> u > t)) AS x FROM customers", id="nested_lambdas"
        ),
        pytest.param(
            "SELECT AGGREGATE(prices, 0, (acc, p) -> acc + p) AS s FROM items", id="aggregate_lambda"
        ),
        pytest.param(
            "SELECT product, price FROM items LATERAL VIEW EXPLODE(prices) e AS price", id="lateral_view"
        ),
        pytest.param(
            "SELECT product, e.p FROM items, LATERAL EXPLODE(prices) AS e(p)", id="lateral_function"
        ),
        pytest.param(
            "SELECT o.id, l.q FROM orders o, LATERAL (SELECT SUM(quantity) AS q FROM items WHERE order_id = o.id) l",
            id="lateral_subquery",
        ),
        pytest.param(
            "SELECT * FROM (SELECT product, quantity FROM items) PIVOT (SUM(quantity) FOR product IN ('x', 'y'))",
            id="pivot",
        ),
        pytest.param("SELECT k, v FROM orders UNPIVOT (v FOR k IN (id, customer_id))", id="unpivot"),
        pytest.param("SELECT id FROM orders UNION ALL SELECT id FROM customers", id="union_all"),
        pytest.param(
            "SELECT id FROM orders EXCEPT ALL (SELECT id FROM customers INTERSECT SELECT order_id FROM items)",
            id="set_operations",
        ),
        pytest.param("WITH big AS (SELECT * FROM orders WHERE amount > 9) SELECT id FROM big", id="cte"),
        pytest.param("WITH x(a, b) AS (SELECT id, amount FROM orders) SELECT b, a FROM x", id="cte_columns"),
        pytest.param(
            "WITH orders AS (SELECT * FROM orders WHERE id > 1) SELECT * FROM orders",
            id="cte_over_its_own_name",
        ),
        pytest.param(
            "WITH RECURSIVE r AS (SELECT id, 1 AS n FROM orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r",
            id="recursive_cte",
        ),
        pytest.param(
            "WITH x AS (WITH x AS (SELECT id AS a FROM orders) SELECT a + 1 AS a FROM x) SELECT a FROM x",
            id="nested_ctes",
        ),
        pytest.param("SELECT q.b FROM (SELECT id AS b FROM orders) AS q", id="derived_table"),
        pytest.param("SELECT p FROM items AS x(o, p, q, r)", id="table_with_column_aliases"),
        pytest.param(
            "SELECT s.p FROM (SELECT id, amount FROM orders) AS s(p, q)", id="subquery_with_column_aliases"
        ),
        pytest.param("SELECT x, id FROM VALUES (1, 2) AS v(x, y) JOIN orders ON id = y", id="values"),
        pytest.param("SELECT r.id, amount FROM range(3) r JOIN orders o ON r.id = o.id", id="table_function"),
        pytest.param(
            "SELECT sales.orders.id, sales.orders.place.geo.lat FROM sales.orders", id="schema_before_columns"
        ),
        pytest.param(
            "SELECT o.id, s.region FROM orders o JOIN sales.orders s ON o.id = s.id", id="two_schemas"
        ),
        pytest.param(
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed DESC) AS n FROM orders",
            id="window",
        ),
        pytest.param(
            "SELECT id, SUM(amount) OVER w AS s FROM orders WINDOW w AS (PARTITION BY customer_id)",
            id="named_window",
        ),
        pytest.param(
            "SELECT COUNT(*), COUNT(DISTINCT customer_id) AS c, SUM(amount) FROM orders", id="names_we_give"
        ),
        pytest.param("SELECT /*+ BROADCAST(customers) */ name FROM orders, customers", id="hint"),
        pytest.param("SELECT current_date(), user, id FROM orders", id="functions_without_parentheses"),
        pytest.param("FROM orders |> WHERE amount > 1 |> SELECT id", id="pipes"),
        pytest.param(
            "SELECT CAST(amount AS STRING) AS s, placed + INTERVAL 1 DAY AS d FROM orders", id="casts"
        ),
    ],
)
def test_rendering(text: str, request: pytest.FixtureRequest) -> None:
    bound = bind(text)
    assert bound.problems == ()
    check_golden(request, shown(text, bound))
    columns = list(parse_sql(bound.rendered).find_all(exp.Column))
    assert columns or "COUNT" in text


ALL_TYPES = table(
    "types",
    a="BOOLEAN",
    b="TINYINT",
    c="SMALLINT",
    d="INT",
    e="BIGINT",
    f="FLOAT",
    g="DOUBLE",
    h="STRING",
    i="BINARY",
    j="DATE",
    k="TIMESTAMP",
    l="TIMESTAMP_NTZ",
    m="VARIANT",
    n="DECIMAL(38,10)",
    o="CHAR(3)",
    p="VARCHAR(7)",
    q="ARRAY<MAP<STRING, STRUCT<`a b`: INT, `c``d`: VARIANT>>>",
    r="STRUCT<`x.y`: STRUCT<`it's`: INT>>",
)


def test_columns_of_every_type_bind() -> None:
    bound = bind("SELECT * FROM types", ALL_TYPES)
    assert bound.problems == ()
    assert bound.output_names == tuple("abcdefghijklmnopqr")
    deep = bind("SELECT q[0]['x'].`a b`, r.`x.y`.`it's` FROM types", ALL_TYPES)
    assert deep.problems == ()
    assert squeeze(deep.rendered) == (
        "SELECT `types`.`q`[0]['x'].`a b` AS `a b`, `types`.`r`.`x.y`.`it's` AS `it's` FROM `types` AS `types`"
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_bind(name: str) -> None:
    quoted = quote(name)
    own = named_table(QualifiedName("default", name), {name: "INT", "other": "INT"})
    for text in (
        f"SELECT * FROM {quoted}",
        f"SELECT {quoted}, {quoted}.other FROM {quoted} WHERE {quoted}.{quoted} > 1",
    ):
        bound = bind(text, own)
        assert bound.problems == ()
        assert bound.output_names == (name.lower(), "other")
        tree = parse_sql(bound.rendered)
        assert {column.table for column in tree.find_all(exp.Column)} == {name.lower()}
        assert {found.name for found in tree.find_all(exp.Table)} == {name.lower()}


def relations(text: str, *names: str) -> list[str]:
    bound = bind(text, *(named_table(QualifiedName(*name.split(".")), {"id": "INT"}) for name in names))
    return [found.relation for found in bound.inputs]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("SELECT id FROM t", ["default.t"], ["t"]),
        ("SELECT id FROM s.t", ["s.t"], ["s_t"]),
        ("SELECT t.id FROM s.t JOIN default.t AS u", ["s.t", "default.t"], ["s_t", "t"]),
        ("WITH t AS (SELECT id FROM t) SELECT id FROM t", ["default.t"], ["t2"]),
        ("WITH T AS (SELECT id FROM t) SELECT id FROM T", ["default.t"], ["t2"]),
        ("WITH t AS (SELECT 1), t2 AS (SELECT id FROM s.x) SELECT id FROM t2", ["s.x"], ["s_x"]),
        ("WITH t AS (SELECT id FROM t), t2 AS (SELECT 1) SELECT id FROM t", ["default.t"], ["t3"]),
        ("WITH t_new AS (SELECT id FROM t) SELECT id FROM t_new", ["default.t"], ["t2"]),
        ("WITH t_old AS (SELECT 1) SELECT id FROM t, t_old", ["default.t"], ["t2"]),
        ("WITH tnew AS (SELECT 1) SELECT id FROM t, tnew", ["default.t"], ["t"]),
        ("SELECT id FROM (WITH t AS (SELECT id FROM t) SELECT id FROM t)", ["default.t"], ["t2"]),
        ("SELECT x.id FROM s.t x, s_t y", ["s.t", "default.s_t"], ["s_t", "s_t2"]),
        ("SELECT x.id FROM t_new x, t y", ["default.t_new", "default.t"], ["t_new", "t2"]),
        ("SELECT x.id FROM t x, T y", ["default.t"], ["t"]),
    ],
)
def test_relations_never_meet_the_names_of_the_query(
    text: str, names: list[str], expected: list[str]
) -> None:
    assert relations(text, *names) == expected


def test_the_states_of_two_tables_never_share_a_name() -> None:
    """`t_new` is a table of its own and would be the new state of t."""
    for text in ("SELECT x.id FROM t x, t_new y", "SELECT x.id FROM t_new x, t y"):
        found = relations(text, "default.t", "default.t_new")
        assert len({f"{relation}_{state}" for relation in found for state in ("old", "new")}) == 4


def test_a_table_named_twice_is_one_input() -> None:
    bound = bind("SELECT a.id FROM orders a JOIN Orders b JOIN default.ORDERS c")
    assert [found.object_id for found in bound.inputs] == ["id of orders"]
    assert {bound.input_of(reference).relation for reference in bound.parsed.references} == {"orders"}


def test_the_users_own_text_over_other_relations() -> None:
    bound = bind("SELECT o.id -- all\nFROM orders o, sales.orders WHERE orders.region = 'x'")
    assert bound.text_over(lambda found: f"{found.relation}_old").text == (
        "SELECT o.id -- all\nFROM `orders_old` o, `sales_orders_old` AS `orders` WHERE orders.region = 'x'"
    )
