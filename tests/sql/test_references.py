"""Which tables a text names: CTEs are none, targets are, and every place is exact."""

from __future__ import annotations

import pytest

from tests.sql.helpers import HOSTILE_NAMES, refuse
from viewkeeper.errors import SqlSyntaxError, UnsupportedError
from viewkeeper.sql.names import QualifiedName, quote
from viewkeeper.sql.references import ParsedText, Reference, parse_query, substitute
from viewkeeper.sql.rendering import relation_named
from viewkeeper.sql.script import Fragment, split_script


def unmark_all(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and the stretches that were marked."""
    text, spans = "", []
    for piece in marked.split("«"):
        inside, found, after = piece.partition("»")
        if found:
            spans.append((len(text), len(text) + len(inside)))
        text += inside + after
    return text, spans


def parse(text: str) -> ParsedText:
    return parse_query(Fragment.whole(text))


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        pytest.param("SELECT 1", "", id="no-table"),
        pytest.param("SELECT * FROM «t»", "t", id="one"),
        pytest.param("SELECT * FROM «t», «u» AS x, «s.v» y", "t u s.v", id="list"),
        pytest.param(
            "SELECT * FROM «t» JOIN «u» ON t.a = u.a LEFT JOIN «t» x USING (a)", "t u t", id="joins"
        ),
        pytest.param(
            "SELECT * FROM «t» NATURAL JOIN «u» CROSS JOIN «v» LEFT ANTI JOIN «w»", "t u v w", id="more-joins"
        ),
        pytest.param("SELECT * FROM («t» JOIN «u» ON t.a = u.a)", "t u", id="parentheses"),
        pytest.param("FROM «t» SELECT a", "t", id="from-first"),
        pytest.param("FROM «t» |> WHERE a > 1 |> SELECT a", "t", id="pipes"),
        pytest.param("(SELECT * FROM «t»)", "t", id="whole-in-parentheses"),
        pytest.param("SELECT * FROM (SELECT * FROM (SELECT * FROM «t») a) b", "t", id="nested"),
        pytest.param(
            "SELECT (SELECT MAX(a) FROM «u») FROM «t» WHERE a IN (SELECT a FROM «v») AND EXISTS (SELECT 1 FROM «w»)",
            "u t v w",
            id="subqueries",
        ),
        pytest.param(
            "SELECT a FROM «t» GROUP BY a HAVING SUM(b) > (SELECT AVG(b) FROM «u»)", "t u", id="having"
        ),
        pytest.param("SELECT CASE WHEN EXISTS (SELECT 1 FROM «u») THEN 1 END FROM «t»", "u t", id="in-case"),
        pytest.param(
            "SELECT * FROM «a» UNION ALL SELECT * FROM «b» EXCEPT ALL SELECT * FROM «c» INTERSECT SELECT * FROM «d»",
            "a b c d",
            id="set-operations",
        ),
        pytest.param(
            "SELECT * FROM «a» MINUS (SELECT * FROM «b» UNION SELECT * FROM «a»)", "a b a", id="minus"
        ),
        pytest.param("WITH x AS (SELECT * FROM «t») SELECT * FROM x", "t", id="cte"),
        pytest.param("WITH x AS (SELECT * FROM «t») SELECT * FROM X JOIN `x`", "t", id="cte-in-any-case"),
        pytest.param(
            "WITH x AS (SELECT * FROM «t») SELECT * FROM x UNION ALL SELECT * FROM x", "t", id="cte-in-union"
        ),
        pytest.param("WITH t AS (SELECT * FROM «t») SELECT * FROM t", "t", id="cte-over-its-own-name"),
        pytest.param(
            "WITH x AS (SELECT * FROM «s.x») SELECT * FROM x, «s.x»", "s.x s.x", id="schema-is-no-cte"
        ),
        pytest.param(
            "WITH x AS (SELECT 1), y AS (SELECT * FROM x, «z»), z AS (SELECT * FROM y) SELECT * FROM z",
            "z",
            id="only-earlier-ctes",
        ),
        pytest.param(
            "WITH x AS (WITH y AS (SELECT * FROM «x», «y») SELECT * FROM y) SELECT * FROM x, «y»",
            "x y y",
            id="nested-with",
        ),
        pytest.param(
            "WITH x AS (SELECT 1) SELECT * FROM (WITH x AS (SELECT * FROM x) SELECT * FROM x) a, x",
            "",
            id="shadowing",
        ),
        pytest.param(
            "SELECT * FROM (WITH x AS (SELECT * FROM «t») SELECT * FROM x) a, «x»", "t x", id="inner-with"
        ),
        pytest.param("SELECT (WITH x AS (SELECT 1 AS a) SELECT a FROM x) FROM «x»", "x", id="with-in-scalar"),
        pytest.param(
            "SELECT * FROM «t» WHERE a IN (WITH x AS (SELECT a FROM «u») SELECT a FROM x)",
            "t u",
            id="with-in-subquery",
        ),
        pytest.param(
            "(WITH x AS (SELECT 1) SELECT * FROM x) UNION ALL SELECT * FROM «x»",
            "x",
            id="with-of-one-operand",
        ),
        pytest.param(
            "WITH x AS (SELECT 1) SELECT * FROM «t» WHERE a IN (SELECT * FROM x)", "t", id="cte-in-subquery"
        ),
        pytest.param(
            "WITH RECURSIVE r(n) AS (SELECT a FROM «t» UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
            "t",
            id="recursive",
        ),
        pytest.param(
            "WITH RECURSIVE a AS (SELECT * FROM «b»), b AS (SELECT 1 UNION ALL SELECT * FROM b, a) SELECT * FROM b",
            "b",
            id="recursive-sees-no-later-cte",
        ),
        pytest.param("SELECT /*+ BROADCAST(t), MERGE(u) */ * FROM «t», «u»", "t u", id="hints"),
        pytest.param("SELECT /*+ REPARTITION(3, a) */ * FROM «t»", "t", id="hint-of-columns"),
        pytest.param("SELECT * FROM «t» PIVOT (SUM(a) FOR b IN ('x', 'y'))", "t", id="pivot"),
        pytest.param("SELECT * FROM «t» AS q PIVOT (SUM(a) FOR b IN ('x')) AS p", "t", id="pivot-aliases"),
        pytest.param("SELECT * FROM «t» UNPIVOT (v FOR n IN (a, b))", "t", id="unpivot"),
        pytest.param("SELECT * FROM «t» LATERAL VIEW OUTER EXPLODE(xs) e AS x", "t", id="lateral-view"),
        pytest.param(
            "SELECT * FROM «t», LATERAL (SELECT * FROM «u» WHERE u.a = t.a)", "t u", id="lateral-subquery"
        ),
        pytest.param("SELECT * FROM «t», LATERAL EXPLODE(xs) AS e(x)", "t", id="lateral-function"),
        pytest.param("SELECT * FROM «t» TABLESAMPLE (10 PERCENT) REPEATABLE (3)", "t", id="sample"),
        pytest.param("SELECT * FROM range(10) r JOIN «t» ON r.id = t.id", "t", id="range"),
        pytest.param("SELECT * FROM EXPLODE(ARRAY(1, 2))", "", id="table-function"),
        pytest.param("SELECT * FROM VALUES (1, 2) AS t(a, b), «u»", "u", id="values"),
        pytest.param(
            "SELECT 'FROM x', `from` FROM «t» -- FROM y\n/* FROM z */", "t", id="no-sql-in-literals"
        ),
        pytest.param("SELECT a.b.c FROM «a»", "a", id="struct-field"),
        pytest.param("INSERT INTO «t» SELECT * FROM «t»", "t t", id="insert-from-itself"),
        pytest.param("INSERT INTO «t» (a, b) VALUES (1, 2)", "t", id="insert-values"),
        pytest.param(
            "INSERT OVERWRITE TABLE «s.t» PARTITION (a = 1) SELECT * FROM «u»", "s.t u", id="overwrite"
        ),
        pytest.param("INSERT INTO «t» BY NAME SELECT * FROM «u»", "t u", id="insert-by-name"),
        pytest.param("INSERT INTO «t» REPLACE WHERE a = 1 SELECT * FROM «u»", "t u", id="insert-replace"),
        pytest.param("INSERT INTO «t» TABLE «u»", "t u", id="insert-table"),
        pytest.param(
            "INSERT INTO «t» WITH t AS (SELECT * FROM «u») SELECT * FROM t", "t u", id="insert-with"
        ),
        pytest.param(
            "WITH t AS (SELECT * FROM «u») INSERT INTO «t» SELECT * FROM t", "u t", id="with-insert"
        ),
        pytest.param("UPDATE «t» SET a = (SELECT MAX(b) FROM «u») WHERE b = 2", "t u", id="update"),
        pytest.param("DELETE FROM «t» AS x WHERE x.a IN (SELECT a FROM «t»)", "t t", id="delete"),
        pytest.param(
            "MERGE INTO «t» USING «t» AS u ON t.a = u.a WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
            "t t",
            id="merge",
        ),
        pytest.param(
            "MERGE INTO «s.t» x USING (SELECT * FROM «u») y ON x.a = y.a WHEN MATCHED THEN UPDATE SET a = y.a",
            "s.t u",
            id="merge-subquery",
        ),
        pytest.param("TRUNCATE TABLE «s.t»", "s.t", id="truncate"),
        pytest.param("SELECT * FROM «s . t»", "s.t", id="spaces-in-a-name"),
        pytest.param("SELECT * FROM\r\n\t«größe»\r\n", "`größe`", id="unicode"),
    ],
)
def test_references(marked: str, names: str) -> None:
    text, spans = unmark_all(marked)
    parsed = parse(text)
    assert [(reference.start, reference.end) for reference in parsed.references] == spans
    assert [str(reference.name) for reference in parsed.references] == names.split()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("INSERT INTO t SELECT * FROM t", (12, 13)),
        ("INSERT INTO s.t (a) SELECT * FROM t", (12, 15)),
        ("INSERT OVERWRITE t SELECT 1", (17, 18)),
        ("WITH t AS (SELECT 1) INSERT INTO t SELECT * FROM t", (33, 34)),
        ("UPDATE t SET a = (SELECT MAX(a) FROM t)", (7, 8)),
        ("DELETE FROM t WHERE a IN (SELECT a FROM t)", (12, 13)),
        ("MERGE INTO t USING t AS u ON t.a = u.a WHEN MATCHED THEN DELETE", (11, 12)),
        ("TRUNCATE TABLE t", (15, 16)),
        ("SELECT * FROM t", None),
    ],
)
def test_the_target_is_the_written_table_only(text: str, target: tuple[int, int] | None) -> None:
    parsed = parse(text)
    written = [reference for reference in parsed.references if reference.is_target]
    assert [(reference.start, reference.end) for reference in written] == ([target] if target else [])
    assert parsed.target == (written[0] if written else None)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names(name: str) -> None:
    quoted = quote(name)
    text = (
        f"SELECT {quoted}.{quoted}, ';' FROM {quoted}.{quoted} JOIN /* ' */ {quoted} AS x -- `\n WHERE 1 = 1"
    )
    parsed = parse(text)
    assert [reference.name for reference in parsed.references] == [
        QualifiedName(name, name),
        QualifiedName("default", name),
    ]
    first, second = parsed.references
    assert text[first.start : first.end] == f"{quoted}.{quoted}"
    assert text[second.start : second.end] == quoted
    assert (first.has_alias, second.has_alias) == (False, True)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_of_ctes(name: str) -> None:
    quoted = quote(name)
    assert [
        str(r.name) for r in parse(f"WITH {quoted} AS (SELECT * FROM t) SELECT * FROM {quoted}").references
    ] == ["t"]


def only(text: str) -> Reference:
    (reference,) = parse(text).references
    return reference


@pytest.mark.parametrize(
    ("text", "stretch", "epoch", "time_travel", "has_alias"),
    [
        ("SELECT * FROM v AS OF EPOCH 3", "v AS OF EPOCH 3", 3, None, False),
        ("SELECT * FROM s.v as of epoch 12 AS x WHERE a", "s.v as of epoch 12", 12, None, True),
        ("SELECT * FROM v AS OF\n EPOCH 3 x", "v AS OF\n EPOCH 3", 3, None, True),
        ("SELECT * FROM v VERSION AS OF 3", "v VERSION AS OF 3", None, "VERSION AS OF 3", False),
        ("SELECT * FROM v VERSION AS OF '3' AS x", "v VERSION AS OF '3'", None, "VERSION AS OF '3'", True),
        ("SELECT * FROM v FOR VERSION AS OF 3 x", "v FOR VERSION AS OF 3", None, "FOR VERSION AS OF 3", True),
        (
            "SELECT * FROM v TIMESTAMP AS OF '2024-01-31 12:00' WHERE a",
            "v TIMESTAMP AS OF '2024-01-31 12:00'",
            None,
            "TIMESTAMP AS OF '2024-01-31 12:00'",
            False,
        ),
        (
            "SELECT * FROM v FOR SYSTEM_TIME AS OF '2024-01-31'",
            "v FOR SYSTEM_TIME AS OF '2024-01-31'",
            None,
            "FOR SYSTEM_TIME AS OF '2024-01-31'",
            False,
        ),
    ],
)
def test_time_travel(
    text: str, stretch: str, epoch: int | None, time_travel: str | None, has_alias: bool
) -> None:
    found = only(text)
    assert text[found.start : found.end] == stretch
    assert (found.epoch, found.time_travel, found.has_alias) == (epoch, time_travel, has_alias)


def test_two_epochs_of_one_view() -> None:
    text = "SELECT * FROM v AS OF EPOCH 3 AS x JOIN v AS OF EPOCH 4 ON x.a = v.a JOIN v y ON y.a = v.a"
    assert [reference.epoch for reference in parse(text).references] == [3, 4, None]


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("SELECT sales.orders.amount, orders.id FROM sales.orders", ["sales."]),
        ("SELECT `sales` . `orders`.`amount` FROM sales.orders", ["`sales` . "]),
        ("SELECT sales.orders.* FROM Sales.Orders", ["sales."]),
        (
            "SELECT sales.orders.address.city, sales.orders.address.geo.lat FROM sales.orders",
            ["sales.", "sales."],
        ),
        ("SELECT default.t.a FROM t", ["default."]),
        ("SELECT sales.amount.x FROM sales, sales.orders", []),
        ("SELECT a.b.c FROM a", []),
        ("SELECT t.orders.x FROM sales.orders, t", []),
        ("UPDATE sales.orders SET a = sales.orders.b + 1", ["sales."]),
    ],
)
def test_the_schema_before_a_column(text: str, stripped: list[str]) -> None:
    assert [text[start:end] for start, end in sorted(parse(text).schema_qualifiers)] == stripped


def test_references_of_a_statement_in_a_script_point_into_the_script() -> None:
    script = "SHOW TABLES;\nSELECT *\n  FROM a\n  JOIN s.b;"
    parsed = parse_query(list(split_script(script))[1])
    places = [parsed.locate(reference) for reference in parsed.references]
    assert [(place.line, place.column, place.length) for place in places] == [(3, 8, 1), (4, 8, 3)]


def not_valid(why: str) -> tuple[type[SqlSyntaxError], str, str]:
    return SqlSyntaxError, f"this is not valid SQL: {why}.", "check the spelling at the marked place."


LITERAL = "write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31 12:00:00' right after the table's name."
UNEXPECTED = "invalid expression / Unexpected token"
TWO_PARTS = (
    UnsupportedError,
    "a name has at most two parts here: schema.name.",
    "attach the table first: ATTACH TABLE t FROM TABLE catalogue.schema.name.",
)
STRAY_EPOCH = (
    SqlSyntaxError,
    "AS OF EPOCH does not follow the name of a view here.",
    "write it right after the view's name: FROM v AS OF EPOCH 3 AS x.",
)
NO_LITERAL = (UnsupportedError, "time travel takes a literal here.", LITERAL)
NOT_A_NUMBER = (
    SqlSyntaxError,
    "AS OF EPOCH takes the number of an epoch.",
    "DESCRIBE HISTORY of the view lists its epochs.",
)


@pytest.mark.parametrize(
    ("marked", "error"),
    [
        ("SELECT a b «c» FROM t", not_valid(UNEXPECTED)),
        ("SELECT\r\n  a,\r\n  b b «b»\r\nFROM t", not_valid(UNEXPECTED)),
        ("SELECT 'ü😀' x «y» FROM t", not_valid(UNEXPECTED)),
        ("SELECT 'two\nlines' x «y» FROM t", not_valid(UNEXPECTED)),
        ("SELECT * FROM v AS OF EPOCH 3 WHERE a «b» c", not_valid(UNEXPECTED)),
        ("SELECT 1«)»", not_valid(UNEXPECTED)),
        ("SELECT (a, a, a, a, a, a, a, a, a, a) x, (a, a, a, a, a) y «z»", not_valid(UNEXPECTED)),
        ("SELECT («1»", not_valid("expecting )")),
        ("SELECT * FROM «(»", not_valid("expected table name")),
        ("SELECT FROM «WHERE»", not_valid("expected table name")),
        ("SELECT * FROM t «WHERE»", not_valid("something is missing")),
        ("SELECT * FROM t «JOIN»", not_valid("expected table name")),
        ("SELECT a FROM t «UNION»", not_valid("something is missing")),
        ("WITH x AS «SELECT» 1", not_valid("expecting (")),
        ("SELECT CAST(a AS«)» FROM t", not_valid("expected TYPE after CAST")),
        ("INSERT «INTO»", not_valid("expected table name")),
        ("MERGE INTO t USING «u»", not_valid("something is missing")),
        ("SELECT * FROM «c.s.t» AS x", TWO_PARTS),
        ("SELECT * FROM t, «a.b.c.d» x", TWO_PARTS),
        ("INSERT INTO «c.s.t» SELECT 1", TWO_PARTS),
        ("SELECT * FROM t «TIMESTAMP» AS OF current_timestamp()", NO_LITERAL),
        ("SELECT * FROM t «FOR» VERSION AS OF 1 + 2 AS x", NO_LITERAL),
        ("SELECT * FROM t «VERSION» AS OF -1", NO_LITERAL),
        ("SELECT * FROM v AS OF EPOCH «three»", NOT_A_NUMBER),
        ("SELECT * FROM v AS OF EPOCH «1.5» AS x", NOT_A_NUMBER),
        ("SELECT * FROM v AS OF EPOCH «²» AS x", NOT_A_NUMBER),
        ("SELECT * FROM (SELECT * FROM t) «AS OF EPOCH 3»", STRAY_EPOCH),
        ("SELECT 1 «AS OF EPOCH 3» FROM t", STRAY_EPOCH),
        ("SELECT * FROM t AS x «AS OF EPOCH 3»", STRAY_EPOCH),
        ("WITH x AS (SELECT * FROM t) SELECT * FROM x «AS OF EPOCH 3»", STRAY_EPOCH),
        (
            "«SHOW CREATE TABLE t»",
            (
                UnsupportedError,
                "this SQL is not understood by Viewkeeper.",
                "write it in standard Spark SQL.",
            ),
        ),
        (
            "«SELECT " + "(" * 3000 + "1" + ")" * 3000 + "»",
            (
                UnsupportedError,
                "this SQL is nested too deeply.",
                "split it into views, or write it with fewer parentheses.",
            ),
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_refusals(marked: str, error: tuple[type[SqlSyntaxError] | type[UnsupportedError], str, str]) -> None:
    kind, message, hint = error
    refuse(parse, marked, kind, message, hint)


def test_a_mistake_after_much_repetition_is_found_where_it_is() -> None:
    """sqlglot shows a hundred characters before the mistake, which may occur more than once."""
    same = "SELECT a AS a FROM t WHERE a = 1 UNION ALL\n" * 20
    refuse(
        parse,
        same + "SELECT a AS a FROM t WHERE a = 1 UNION ALL\nSELECT a AS a «b» FROM t",
        *not_valid(UNEXPECTED),
    )


def test_changes_of_a_view_span_the_whole_call() -> None:
    text = "SELECT c.a FROM CHANGES(s.v, 3, 5) AS c JOIN changes(w, 4) ON true"
    parsed = parse_query(Fragment.whole(text))
    first, second = parsed.references
    assert (str(first.name), first.changes, text[first.start : first.end]) == (
        "s.v",
        (3, 5),
        "CHANGES(s.v, 3, 5)",
    )
    assert (str(second.name), second.changes, second.has_alias) == ("w", (4, None), False)
    substituted = substitute(parsed, lambda reference: relation_named(f"of_{reference.name.name}"))
    assert substituted.text == "SELECT c.a FROM `of_v` AS c JOIN `of_w` AS `w` ON true"


@pytest.mark.parametrize("call", ["CHANGES(v)", "CHANGES(v, x)", "CHANGES(v, 1, 2, 3)", "CHANGES(v, -1)"])
def test_changes_without_epochs_are_refused(call: str) -> None:
    with pytest.raises(SqlSyntaxError, match="CHANGES takes the name of a view"):
        parse_query(Fragment.whole(f"SELECT * FROM {call}"))
