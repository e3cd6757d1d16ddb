"""The user's own text over other relations: nothing else changes, and every place leads back. (I21)"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tests.sql.helpers import HOSTILE_NAMES
from tests.sql.test_references import unmark_all
from viewkeeper.sql.names import quote
from viewkeeper.sql.references import Reference, Substitution, parse_query, substitute
from viewkeeper.sql.rendering import at_time, delta_table, relation_named, visible_rows
from viewkeeper.sql.script import Fragment, parse_sql


def over_new_states(text: str) -> str:
    return substitute(
        parse_query(Fragment.whole(text)), lambda reference: relation_named(f"{reference.name.name}_new")
    ).text


@pytest.mark.parametrize(
    ("text", "substituted"),
    [
        ("SELECT * FROM t", "SELECT * FROM `t_new` AS `t`"),
        ("SELECT * FROM t AS x", "SELECT * FROM `t_new` AS x"),
        ("SELECT * FROM t x", "SELECT * FROM `t_new` x"),
        ("SELECT * FROM t AS x(a, b)", "SELECT * FROM `t_new` AS x(a, b)"),
        ("SELECT T.a FROM T", "SELECT T.a FROM `T_new` AS `T`"),
        ("SELECT a--b\nFROM t/* c */WHERE 1=1", "SELECT a--b\nFROM `t_new` AS `t`/* c */WHERE 1=1"),
        ("SELECT*FROM`t`,`u`", "SELECT*FROM`t_new` AS `t`,`u_new` AS `u`"),
        ("SELECT * FROM (t)", "SELECT * FROM (`t_new` AS `t`)"),
        (
            "WITH t AS (SELECT * FROM t) SELECT * FROM t",
            "WITH t AS (SELECT * FROM `t_new` AS `t`) SELECT * FROM t",
        ),
        ("SELECT sales.t.a FROM sales.t", "SELECT t.a FROM `t_new` AS `t`"),
        ("SELECT sales.t.s.x, sales.t.* FROM sales.t", "SELECT t.s.x, t.* FROM `t_new` AS `t`"),
        ("SELECT * FROM v AS OF EPOCH 3", "SELECT * FROM `v_new` AS `v`"),
        ("SELECT * FROM v AS OF EPOCH 3 AS x", "SELECT * FROM `v_new` AS x"),
        ("SELECT * FROM t VERSION AS OF 3 x", "SELECT * FROM `t_new` x"),
        ("SELECT t.a FROM t TABLESAMPLE (5 ROWS)", "SELECT t.a FROM `t_new` TABLESAMPLE (5 ROWS) AS `t`"),
        (
            "SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (3) WHERE a",
            "SELECT * FROM `t_new` TABLESAMPLE (10 PERCENT) REPEATABLE (3) AS `t` WHERE a",
        ),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS) AS x", "SELECT * FROM `t_new` TABLESAMPLE (5 ROWS) AS x"),
        (
            "SELECT * FROM t VERSION AS OF 3 TABLESAMPLE (5 ROWS), u",
            "SELECT * FROM `t_new` TABLESAMPLE (5 ROWS) AS `t`, `u_new` AS `u`",
        ),
        ("SELECT /*+ BROADCAST(t) */ * FROM t", "SELECT /*+ BROADCAST(t) */ * FROM `t_new` AS `t`"),
        (
            "SELECT * FROM t PIVOT (SUM(a) FOR b IN (1)) p",
            "SELECT * FROM `t_new` AS `t` PIVOT (SUM(a) FOR b IN (1)) p",
        ),
        (
            "SELECT x FROM t LATERAL VIEW EXPLODE(t.xs) e AS x",
            "SELECT x FROM `t_new` AS `t` LATERAL VIEW EXPLODE(t.xs) e AS x",
        ),
        ("INSERT INTO t SELECT * FROM t", "INSERT INTO `t_new` SELECT * FROM `t_new` AS `t`"),
        ("INSERT INTO t (a, b) VALUES (1, 2)", "INSERT INTO `t_new` (a, b) VALUES (1, 2)"),
        ("INSERT INTO t TABLE u", "INSERT INTO `t_new` TABLE `u_new`"),
        ("INSERT OVERWRITE t FROM u SELECT a", "INSERT OVERWRITE `t_new` FROM `u_new` AS `u` SELECT a"),
        ("TRUNCATE TABLE t", "TRUNCATE TABLE `t_new`"),
        ("UPDATE t SET t.a = 1 WHERE t.b", "UPDATE `t_new` AS `t` SET t.a = 1 WHERE t.b"),
        ("UPDATE t AS x SET a = 1", "UPDATE `t_new` AS x SET a = 1"),
        ("DELETE FROM t WHERE t.a = 1", "DELETE FROM `t_new` AS `t` WHERE t.a = 1"),
        ("DELETE FROM t x", "DELETE FROM `t_new` x"),
        (
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            "MERGE INTO `t_new` AS `t` USING `u_new` AS `u` ON t.a = u.a WHEN MATCHED THEN DELETE",
        ),
        (
            "MERGE INTO s.t x USING u AS y ON x.a = y.a WHEN MATCHED THEN UPDATE SET *",
            "MERGE INTO `t_new` x USING `u_new` AS y ON x.a = y.a WHEN MATCHED THEN UPDATE SET *",
        ),
    ],
)
def test_only_the_tables_change(text: str, substituted: str) -> None:
    assert over_new_states(text) == substituted


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_keep_their_alias(name: str) -> None:
    quoted = quote(name)
    text = over_new_states(f"SELECT {quoted}.a FROM {quoted} JOIN {quoted} AS x")
    assert (
        text == f"SELECT {quoted}.a FROM {quote(name + '_new')} AS {quoted} JOIN {quote(name + '_new')} AS x"
    )
    columns = [column.table for column in parse_sql(text).find_all(exp.Column)]
    assert columns == [name]


def test_relations_may_be_subqueries_and_addresses() -> None:
    relations = {
        "t": delta_table("/data/it`s", 3),
        "v": visible_rows(delta_table("/data/v"), ["a b", "c"]),
    }
    found = substitute(
        parse_query(Fragment.whole("SELECT t.a FROM t JOIN v x ON t.a = x.c")),
        lambda reference: relations[reference.name.name],
    )
    assert found.text == (
        "SELECT t.a FROM delta.`/data/it``s` VERSION AS OF 3 AS `t` "
        "JOIN (SELECT `a b`, `c` FROM delta.`/data/v`) x ON t.a = x.c"
    )


# ------------------------------------------------------------------------------------ random queries

PLAIN_NAMES = ("a", "b", "c", "T", "`d e`", "größe")
GAPS = (" ", "\n", "  ", " /* FROM x; ' */ ", " -- it's FROM y\n", "\t")
PREDICATES = ("1 = 1", "x > 'a; FROM t'", "`t` IS NULL", "f(y, 'it''s') = \"q\"", "z.y.x = 1")
TIME_TRAVEL = (" VERSION AS OF 3", " TIMESTAMP AS OF '2024-01-31'", " AS OF EPOCH 7")


class RandomQueries:
    """Queries as text, with the tables they name marked; names of CTEs in scope are not marked."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def any_of(self, choices: Sequence[str]) -> str:
        return self.random.choice(choices)

    def maybe(self, *choices: str) -> str:
        return self.any_of(("",) * (2 * len(choices)) + choices)

    def rarely(self) -> bool:
        return self.random.random() < 0.2

    def query(self, ctes: frozenset[str] = frozenset(), depth: int = 2) -> str:
        prefix = []
        for _ in range(self.random.randint(0, 2) if depth else 0):
            name = self.any_of(PLAIN_NAMES)
            prefix.append(f"{name} AS ({self.query(ctes, depth - 1)})")
            ctes = ctes | {name.strip("`").lower()}
        text = f"WITH {', '.join(prefix)}{self.any_of(GAPS)}" if prefix else ""
        text += self.select(ctes, depth)
        if depth and self.rarely():
            text += f"{self.any_of(GAPS)}UNION ALL {self.select(ctes, depth - 1)}"
        return text

    def select(self, ctes: frozenset[str], depth: int) -> str:
        items = ["x", "'FROM b' AS l", "*"]
        if depth and self.rarely():
            items.append(f"({self.query(ctes, depth - 1)}) AS s")
        text = f"SELECT {self.maybe('/*+ BROADCAST(a) */ ')}{', '.join(items)}{self.any_of(GAPS)}"
        text += f"FROM {self.source(ctes, depth)}"
        for _ in range(self.random.randint(0, 2)):
            join = self.any_of(["JOIN", "LEFT JOIN", "FULL OUTER JOIN"])
            text += f"{self.any_of(GAPS)}{join} {self.source(ctes, depth)} ON {self.any_of(PREDICATES)}"
        text += self.maybe(" LATERAL VIEW EXPLODE(xs) e AS x") + f" WHERE {self.any_of(PREDICATES)}"
        if depth and self.rarely():
            text += f" AND x IN ({self.query(ctes, depth - 1)})"
        return text

    def source(self, ctes: frozenset[str], depth: int) -> str:
        if depth and self.rarely():
            return f"({self.query(ctes, depth - 1)}) AS sub"
        name = self.any_of([*PLAIN_NAMES, *PLAIN_NAMES, quote(self.any_of(HOSTILE_NAMES))])
        schema = self.maybe("s.", "`s t`.")
        suffix = self.maybe(" TABLESAMPLE (5 ROWS)") + self.maybe(" AS q", " r")
        if not schema and name.strip("`").lower() in ctes:
            return name + suffix
        return f"«{schema}{name}{self.maybe(*TIME_TRAVEL)}»{suffix}"


marked_queries = st.integers(0, 2**32).map(lambda seed: RandomQueries(seed).query(depth=seed % 3))


@settings(max_examples=35, deadline=None)
@given(marked_queries)
def test_the_tables_of_random_queries_are_found(marked: str) -> None:
    text, spans = unmark_all(marked)
    found = parse_query(Fragment.whole(text)).references
    assert [(reference.start, reference.end) for reference in found] == spans


def same_name(reference: Reference) -> exp.Expr:
    """A relation of the reference's own name, schema and version."""
    table = relation_named(reference.name.name)
    if reference.name.schema != "default":
        table.set("db", exp.to_identifier(reference.name.schema, quoted=True))
    return table if reference.time_travel is None else at_time(table, reference.time_travel)


def without_own_aliases(tree: exp.Expr) -> exp.Expr:
    """All names quoted, and no table with its own name as alias: `FROM t AS t` is `FROM t`."""
    tree = tree.copy()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)
    for table in tree.find_all(exp.Table):
        if table.alias == table.name:
            table.set("alias", None)
    return tree


@settings(max_examples=35, deadline=None)
@given(marked_queries)
def test_relations_of_the_same_name_give_the_same_tree(marked: str) -> None:
    text, _ = unmark_all(marked)
    parsed = parse_query(Fragment.whole(text))
    again = parse_sql(substitute(parsed, same_name).text)
    assert without_own_aliases(again) == without_own_aliases(parsed.tree)


def origins(substitution: Substitution) -> list[tuple[int, int]]:
    """For each character of the new text, the stretch of the old text that it stands for."""
    found: list[tuple[int, int]] = []
    at = 0
    for start, end, replacement in substitution.edits:
        found += [(position, position + 1) for position in range(at, start)]
        found += [(start, end)] * len(replacement)
        at = end
    length = len(substitution.fragment.text)
    return found + [(position, position + 1) for position in range(at, length)]


@settings(max_examples=35, deadline=None)
@given(marked_queries, st.data())
def test_every_place_leads_back(marked: str, data: st.DataObject) -> None:
    text, _ = unmark_all(marked)
    script = "-- before\n;" + text
    fragment = Fragment(text, script, len(script) - len(text))
    substitution = substitute(parse_query(fragment), lambda reference: relation_named("a longer name; `x`"))
    from_where = origins(substitution)
    assert len(from_where) == len(substitution.text)
    for _ in range(10):
        first = data.draw(st.integers(0, len(substitution.text) - 1))
        last = data.draw(st.integers(first, len(substitution.text) - 1))
        start, end = from_where[first][0], from_where[last][1]
        assert substitution.locate(first, last + 1) == fragment.locate(start, max(end, start + 1))


@pytest.mark.parametrize(
    ("text", "stretch", "marked"),
    [
        ("SELECT zz FROM t", "zz", "SELECT «zz» FROM t"),
        ("SELECT a FROM t WHERE zz", "zz", "SELECT a FROM t WHERE «zz»"),
        ("SELECT a FROM t JOIN u ON zz", "`u_new` AS `u`", "SELECT a FROM t JOIN «u» ON zz"),
        ("SELECT a FROM sales.t JOIN u ON zz", "`t_new`", "SELECT a FROM «sales.t» JOIN u ON zz"),
        ("SELECT a FROM v AS OF EPOCH 3 x", "_new", "SELECT a FROM «v AS OF EPOCH 3» x"),
        ("SELECT sales.t.zz FROM sales.t", "zz", "SELECT sales.t.«zz» FROM sales.t"),
        ("SELECT a, sales.t.zz FROM sales.t", "a, t.zz", "SELECT «a, sales.t.zz» FROM sales.t"),
        ("SELECT sales.t.zz FROM sales.t", "SELECT ", "«SELECT »sales.t.zz FROM sales.t"),
        ("SELECT a FROM t, u WHERE zz", "`t`, `u_new`", "SELECT a FROM «t, u» WHERE zz"),
        ("SELECT 'ü😀', zz FROM t, u", "zz", "SELECT 'ü😀', «zz» FROM t, u"),
        ("SELECT a\nFROM t,\n\tu\nWHERE zz", "zz", "SELECT a\nFROM t,\n\tu\nWHERE «zz»"),
    ],
)
def test_places(text: str, stretch: str, marked: str) -> None:
    parsed = parse_query(Fragment.whole(text))
    substitution = substitute(parsed, lambda reference: relation_named(f"{reference.name.name}_new"))
    start = substitution.text.index(stretch)
    _, [(first, last)] = unmark_all(marked)
    assert substitution.locate(start, start + len(stretch)) == parsed.fragment.locate(first, last)
