"""Names that mean nothing: the message, the guess and the place, marked «like this»."""

from __future__ import annotations

import pytest

from tests.sql.helpers import bind, check_error, refuse, table, unmark
from viewkeeper.errors import InvalidStatementError, UnknownNameError, UnsupportedError, UserError

FIXED = (
    UnsupportedError,
    "a materialized view follows its tables as they change; it cannot be fixed to one version.",
    "leave AS OF out.",
)
NO_TABLE = (
    UnsupportedError,
    "the query reads no table of the warehouse.",
    "a materialized view needs at least one table or view to follow.",
)
NO_QUERY = (InvalidStatementError, "a view is made of a query.", "write AS SELECT …")


@pytest.mark.parametrize(
    ("marked", "error"),
    [
        (
            "SELECT id FROM «ordres»",
            (UnknownNameError, "there is no table or view ordres.", "did you mean orders?"),
        ),
        (
            "SELECT id\nFROM orders o\nJOIN «sales.order» s ON TRUE",
            (UnknownNameError, "there is no table or view sales.order.", "did you mean sales.orders?"),
        ),
        (
            "SELECT id FROM «`no such thing`» x",
            (UnknownNameError, "there is no table or view `no such thing`.", "create or attach it first."),
        ),
        (
            "WITH c AS (SELECT * FROM orders) SELECT * FROM c, «zzz»",
            (UnknownNameError, "there is no table or view zzz.", "create or attach it first."),
        ),
        (
            "SELECT * FROM orders WHERE id IN (SELECT id FROM «custmers»)",
            (UnknownNameError, "there is no table or view custmers.", "did you mean customers?"),
        ),
        ("SELECT * FROM «orders VERSION AS OF 3» o", FIXED),
        ("SELECT * FROM «orders TIMESTAMP AS OF '2024-01-31'»", FIXED),
        ("SELECT * FROM items, «orders AS OF EPOCH 3»", FIXED),
        ("«SELECT 1»", NO_TABLE),
        ("«SELECT * FROM range(3)»", NO_TABLE),
        ("«WITH x AS (SELECT 1) SELECT * FROM x»", NO_TABLE),
        ("«DELETE FROM orders»", NO_QUERY),
        ("«INSERT INTO orders SELECT * FROM orders»", NO_QUERY),
        ("«VALUES (1)»", NO_QUERY),
    ],
)
def test_queries_that_no_view_can_be_made_of(marked: str, error: tuple[type[UserError], str, str]) -> None:
    kind, message, hint = error
    refuse(bind, marked, kind, message, hint)


def no_column(name: str) -> str:
    return f"there is no column {name} here."


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    [
        pytest.param("SELECT «amuont» FROM orders", no_column("amuont"), "did you mean amount?", id="select"),
        pytest.param(
            "SELECT o.«amuont» FROM orders o", no_column("amuont"), "did you mean amount?", id="qualified"
        ),
        pytest.param(
            "SELECT\n  id,\n\t«zz»\nFROM orders",
            no_column("zz"),
            "the columns are amount, customer_id, id, placed.",
            id="third-line",
        ),
        pytest.param(
            "SELECT o.«zz» FROM orders o, items",
            no_column("zz"),
            "the columns are id, customer_id, amount, placed.",
            id="only-that-tables-columns",
        ),
        pytest.param(
            "SELECT 'ü😀', «amuont» FROM orders",
            no_column("amuont"),
            "did you mean amount?",
            id="after-unicode",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE «amuont» > 1",
            no_column("amuont"),
            "did you mean amount?",
            id="where",
        ),
        pytest.param(
            "SELECT id FROM orders JOIN items ON id = «ordr_id»",
            no_column("ordr_id"),
            "did you mean order_id?",
            id="join",
        ),
        pytest.param(
            "SELECT COUNT(*) FROM orders GROUP BY «custmer_id»",
            no_column("custmer_id"),
            "did you mean customer_id?",
            id="group-by",
        ),
        pytest.param(
            "SELECT id FROM orders ORDER BY «amuont»",
            no_column("amuont"),
            "did you mean amount?",
            id="order-by",
        ),
        pytest.param(
            "SELECT SUM(«amuont») AS s FROM orders",
            no_column("amuont"),
            "did you mean amount?",
            id="function",
        ),
        pytest.param(
            "SELECT SUM(id) FILTER (WHERE «amuont» > 1) FROM orders",
            no_column("amuont"),
            "did you mean amount?",
            id="filter",
        ),
        pytest.param(
            "SELECT ROW_NUMBER() OVER (ORDER BY «amuont») FROM orders",
            no_column("amuont"),
            "did you mean amount?",
            id="window",
        ),
        pytest.param(
            "SELECT SUM(id) OVER w FROM orders WINDOW w AS (ORDER BY «amuont»)",
            no_column("amuont"),
            "did you mean amount?",
            id="named-window",
        ),
        pytest.param(
            "SELECT CASE WHEN «amuont» > 1 THEN 1 END FROM orders",
            no_column("amuont"),
            "did you mean amount?",
            id="case",
        ),
        pytest.param(
            "SELECT id FROM orders UNION ALL SELECT «nme» FROM customers",
            no_column("nme"),
            "did you mean name?",
            id="second-of-a-union",
        ),
        pytest.param(
            "SELECT TRANSFORM(tags, t -> CONCAT(t, «nme»)) FROM customers",
            no_column("nme"),
            "did you mean name?",
            id="lambda",
        ),
        pytest.param(
            "SELECT amount AS a1, «a2» + 1 AS more FROM orders",
            no_column("a2"),
            "the columns are amount, customer_id, id, placed.",
            id="lateral-alias",
        ),
        pytest.param(
            "WITH x AS (SELECT id AS i FROM orders) SELECT «id» FROM x",
            no_column("id"),
            "did you mean i?",
            id="cte",
        ),
        pytest.param(
            "WITH x(p, q) AS (SELECT id, amount FROM orders) SELECT «id» FROM x",
            no_column("id"),
            "the columns are p, q.",
            id="cte-columns",
        ),
        pytest.param(
            "WITH x AS (SELECT «amuont» FROM orders) SELECT * FROM x",
            no_column("amuont"),
            "did you mean amount?",
            id="inside-a-cte",
        ),
        pytest.param(
            "SELECT s.«id» FROM (SELECT id AS q FROM orders) s",
            no_column("id"),
            "the columns are q.",
            id="derived-table",
        ),
        pytest.param(
            "SELECT s.«quantty» FROM orders JOIN (SELECT quantity FROM items) s",
            no_column("quantty"),
            "did you mean quantity?",
            id="derived-table-in-join",
        ),
        pytest.param(
            "SELECT «p» FROM items LATERAL VIEW EXPLODE(prices) e AS price",
            no_column("p"),
            "the columns are order_id, price, prices, product, quantity.",
            id="lateral-view",
        ),
        pytest.param(
            "SELECT e.«pr» FROM items LATERAL VIEW EXPLODE(prices) e AS price",
            no_column("pr"),
            "did you mean price?",
            id="lateral-view-qualified",
        ),
        pytest.param(
            "SELECT v.«z» FROM VALUES (1, 2) AS v(x, y), orders",
            no_column("z"),
            "the columns are x, y.",
            id="values",
        ),
        pytest.param(
            "SELECT «product» FROM items AS x(o, p, q, r)",
            no_column("product"),
            "the columns are o, p, q, r.",
            id="column-aliases",
        ),
        pytest.param(
            "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE c.«nam» = 'x')",
            no_column("nam"),
            "did you mean name?",
            id="correlated-qualified",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE order_id = «custmer_id»)",
            no_column("custmer_id"),
            "did you mean customer_id?",
            id="correlated-guesses-outer-columns",
        ),
        pytest.param(
            "SELECT id FROM orders WHERE id IN (SELECT «zz» FROM items)",
            no_column("zz"),
            "the columns are order_id, prices, product, quantity, amount, customer_id, id, placed.",
            id="correlated-lists-inner-columns-first",
        ),
        pytest.param(
            "SELECT sales.orders.«regin» FROM sales.orders",
            no_column("regin"),
            "did you mean region?",
            id="after-a-schema",
        ),
        pytest.param(
            "SELECT «`a b`» FROM orders",
            no_column("a b"),
            "the columns are amount, customer_id, id, placed.",
            id="quoted",
        ),
        pytest.param(
            "SELECT orders.«zz».y FROM orders",
            no_column("zz"),
            "the columns are id, customer_id, amount, placed.",
            id="struct",
        ),
    ],
)
def test_unknown_columns(marked: str, message: str, hint: str) -> None:
    text, place = unmark(marked)
    (problem,) = bind(text).problems
    check_error(problem, UnknownNameError, message, hint, place)


AMBIGUOUS = "the column {0} is ambiguous here: several tables have it."


@pytest.mark.parametrize(
    ("marked", "column"),
    [
        pytest.param("SELECT «id» FROM orders JOIN customers ON customer_id = customers.id", "id", id="join"),
        pytest.param("SELECT name FROM orders, customers WHERE «id» = 1", "id", id="where"),
        pytest.param("SELECT a.id FROM orders a, orders b ORDER BY «amount»", "amount", id="self-join"),
        pytest.param(
            "SELECT name FROM customers WHERE EXISTS (SELECT 1 FROM orders a, orders b WHERE «placed» > 1)",
            "placed",
            id="subquery",
        ),
        pytest.param(
            "SELECT «x» FROM (SELECT id AS x FROM orders) a, (SELECT id AS x FROM items, orders) b",
            "x",
            id="derived-tables",
        ),
    ],
)
def test_ambiguous_columns(marked: str, column: str) -> None:
    text, place = unmark(marked)
    (problem,) = bind(text).problems
    hint = f"write the table's name before it, e.g. t.{column}."
    check_error(problem, UnknownNameError, AMBIGUOUS.format(column), hint, place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT z.* FROM orders", "the names of the query do not bind: Unknown table: z."),
        (
            "SELECT 1 FROM orders x JOIN items x ON TRUE",
            "the names of the query do not bind: Alias already used: x.",
        ),
        (
            "SELECT 1 FROM orders JOIN items USING (zz)",
            "the names of the query do not bind: Cannot automatically join: zz.",
        ),
        (
            "SELECT 1 FROM orders, sales.orders",
            "the names of the query do not bind: Alias already used: orders.",
        ),
    ],
)
def test_queries_that_do_not_bind_as_a_whole(text: str, message: str) -> None:
    bound = bind(text)
    assert (bound.rendered, bound.output_names) == ("", ())
    (problem,) = bound.problems
    check_error(problem, InvalidStatementError, message, "", None)


def test_text_that_we_cannot_parse_again_is_a_problem_and_no_crash() -> None:
    (problem,) = bind("SELECT * FROM orders@v3").problems
    check_error(
        problem, UnsupportedError, "the query is not understood.", "write it in standard Spark SQL.", None
    )


def test_several_problems_in_the_order_of_the_text() -> None:
    text = "SELECT z1, id FROM orders WHERE z2 = 1 UNION ALL SELECT 1, 2 FROM items WHERE z3 = 2"
    problems = bind(text).problems
    assert [problem.message for problem in problems] == [no_column("z1"), no_column("z2"), no_column("z3")]
    assert [text[p.location.column - 1 :][:2] for p in problems if p.location] == ["z1", "z2", "z3"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT user, current_user, session_user, current_catalog, localtimestamp FROM orders",
        "SELECT customer_id, grouping__id FROM orders GROUP BY customer_id WITH CUBE",
        "SELECT EXTRACT(YEAR FROM placed), DATEDIFF(DAY, placed, placed), TIMESTAMPADD(HOUR, 1, placed) FROM orders",
        "SELECT MASK(name, lowerChar => 'x') FROM customers",
        "SELECT col FROM items LATERAL VIEW EXPLODE(prices)",
        "SELECT pos, col FROM items, LATERAL POSEXPLODE(prices)",
        "SELECT s.id FROM (SELECT * FROM range(3)) s, items",
        "SELECT * FROM orders UNPIVOT (v FOR k IN (id, customer_id))",
        "SELECT up.k FROM orders UNPIVOT INCLUDE NULLS (v FOR k IN (id AS i, customer_id)) AS up",
        "SELECT x, y FROM items PIVOT (SUM(quantity) FOR product IN ('x', 'y'))",
        "SELECT /*+ REPARTITION(3, zz) */ id FROM orders",
        "SELECT named_struct('x', id).x FROM orders",
        "SELECT COUNT(*) FROM orders HAVING COUNT(*) > 1",
        "SELECT id AS amount FROM orders ORDER BY amount",
    ],
)
def test_no_problem_where_there_is_none(text: str) -> None:
    """A problem that is none would keep people from replacing what a working view reads."""
    assert bind(text).problems == ()


def test_hostile_columns_are_shown_as_they_are() -> None:
    odd = table("t", **{"a b": "INT", "it's": "STRING"})
    text, place = unmark("SELECT «`a c`» FROM t")
    (problem,) = bind(text, odd).problems
    check_error(problem, UnknownNameError, no_column("a c"), "did you mean a b?", place)
