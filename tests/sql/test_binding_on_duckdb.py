"""Agreement: the user's text and our rendering of it give the same rows on DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest

from tests.sql.helpers import bind
from viewkeeper.sql.dialect import transpile

ROWS = """
CREATE TABLE orders AS SELECT * FROM (VALUES
    (1, 1, 10.00, DATE '2024-01-01'), (2, 1, 5.50, DATE '2024-01-02'), (3, 2, 10.00, DATE '2024-01-02'),
    (4, NULL, 1.00, NULL), (4, NULL, 1.00, NULL)) AS t(id, customer_id, amount, placed);
CREATE TABLE customers AS SELECT * FROM (VALUES
    (1, 'ann', {'street': 'x', 'geo': {'lat': 1.5, 'lon': 2.5}}), (2, 'it''s', NULL), (3, 'a"b', NULL), (4, NULL, NULL)
    ) AS t(id, name, address);
CREATE TABLE items AS SELECT * FROM (VALUES (1, 'pen', 2), (1, 'ink', 1), (3, 'pen', 7), (9, NULL, NULL)
    ) AS t(order_id, product, quantity);
CREATE VIEW orders2 AS SELECT * FROM orders;
CREATE TABLE sales_orders AS SELECT * FROM (VALUES (1, 'north'), (3, 'south')) AS t(id, region);
"""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(ROWS)
        yield connection


def bag(database: duckdb.DuckDBPyConnection, spark_sql: str) -> Counter[tuple[object, ...]]:
    rows = database.execute(transpile(spark_sql, "duckdb")).fetchall()
    return Counter(tuple(map(repr, row)) for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, amount FROM orders WHERE amount > 2",
        "SELECT name, amount FROM orders JOIN customers ON customer_id = customers.id",
        "SELECT c.id, o.id AS oid FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
        "SELECT id, name, region FROM customers FULL JOIN sales.orders USING (id)",
        "SELECT id FROM orders NATURAL JOIN sales.orders AS s",
        "SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM items)",
        "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id AND amount > 5)",
        "SELECT id, (SELECT SUM(quantity) FROM items WHERE order_id = id) AS pieces FROM orders",
        "SELECT id FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.customer_id = o.customer_id)",
        "SELECT customer_id AS c, SUM(amount) AS total FROM orders GROUP BY c",
        "SELECT customer_id % 2 AS customer_id, COUNT(*) AS n FROM orders GROUP BY orders.customer_id",
        "SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY 1 HAVING total > 9",
        "SELECT amount * 2 AS dbl, dbl + 1 AS more FROM orders",
        "SELECT id FROM orders UNION ALL SELECT id FROM customers",
        "SELECT id FROM orders EXCEPT ALL (SELECT id FROM customers INTERSECT SELECT order_id FROM items)",
        "WITH orders AS (SELECT * FROM orders WHERE id > 1) SELECT id, amount FROM orders",
        "WITH x(a, b) AS (SELECT id, amount FROM orders) SELECT b, a FROM x",
        "WITH o AS (WITH o AS (SELECT id AS i FROM orders) SELECT i + 1 AS i FROM o) SELECT i FROM o",
        "SELECT (WITH x AS (SELECT MAX(id) AS i FROM items i JOIN orders o ON order_id = id) SELECT i FROM x) + id AS s FROM orders",
        "WITH x AS (SELECT id AS i FROM orders) SELECT i FROM x WHERE i IN (WITH x AS (SELECT order_id AS i FROM items) SELECT i FROM x)",
        "WITH RECURSIVE r AS (SELECT id, 1 AS n FROM orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT q.b FROM (SELECT id + customer_id AS b FROM orders) AS q WHERE b IS NOT NULL",
        "SELECT address.street, c.address.geo.lat AS lat FROM customers c",
        "SELECT sales.orders.id, o.amount FROM sales.orders JOIN orders AS o ON sales.orders.id = o.id",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY id) AS n FROM sales.orders s JOIN orders USING (id)",
        "SELECT DISTINCT customer_id FROM orders",
        """SELECT id FROM customers WHERE name = 'it''s' OR name = "a""b" """,
        "SELECT product, COUNT(*) AS n, SUM(quantity) AS q FROM items GROUP BY product",
        "SELECT x, id FROM VALUES (1, 2), (3, 4) AS v(x, y) JOIN orders ON id = y",
        "SELECT id, product FROM orders, LATERAL (SELECT product FROM items WHERE order_id = id) l",
    ],
)
def test_the_same_rows(database: duckdb.DuckDBPyConnection, text: str) -> None:
    bound = bind(text)
    assert bound.problems == ()
    own_words = bag(database, bound.text_over(lambda found: found.relation).text)
    assert own_words, "a query without rows shows nothing"
    assert bag(database, bound.rendered) == own_words
