"""Which values depend on the order in which Spark adds, and where they decide which rows there are."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.from_query import read_algebra
from viewkeeper.algebra.nodes import Project
from viewkeeper.facts.number_kinds import Number, kinds_of
from viewkeeper.facts.order_dependence import order_dependence
from viewkeeper.sql.binding import bind_query
from viewkeeper.sql.script import Fragment
from viewkeeper.testing import read_schema

TABLES = read_schema("CREATE TABLE t (k INT, i INT, b BIGINT, n DECIMAL(10,2), d DOUBLE, f FLOAT, s STRING)")


def _read(text: str) -> Project:
    query = bind_query(Fragment.whole(text), TABLES.resolve, TABLES.names)
    found = read_algebra(query, query.output_names)
    assert isinstance(found, Project), found
    return found


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("i", Number.SMALL),
        ("i + b", Number.BIG),
        ("b * n", Number.DECIMAL),
        ("n - d", Number.FLOATING),
        ("i / 2", Number.FLOATING),
        ("n / i", Number.DECIMAL),
        ("i DIV 2", Number.BIG),
        ("-(f)", Number.FLOATING),
        ("CASE WHEN s = 'a' THEN i END", Number.SMALL),
        ("CASE WHEN s = 'a' THEN i ELSE d END", Number.FLOATING),
        ("IF(s = 'a', NULL, b)", Number.BIG),
        ("COALESCE(n, 0)", Number.DECIMAL),
        ("NULLIF(i, 0)", Number.SMALL),
        ("CAST(s AS DECIMAL(9,1))", Number.DECIMAL),
        ("length(s)", Number.SMALL),
        ("s", None),
        ("sqrt(i)", None),
        ("1.5", Number.DECIMAL),
        ("1e3", Number.FLOATING),
    ],
)
def test_kinds_of_numbers(expression: str, kind: Number | None) -> None:
    assert kinds_of(_read(f"SELECT {expression} AS x FROM t")) == (kind,)


@pytest.mark.parametrize(
    ("aggregate", "depends"),
    [
        ("sum(d)", True),
        ("sum(DISTINCT f)", True),
        ("sum(i / 2)", True),
        ("sum(sqrt(i))", True),
        ("sum(s)", True),
        ("avg(b)", True),
        ("avg(d) FILTER (WHERE i > 1)", True),
        ("kurtosis(i)", True),
        ("sum(b)", False),
        ("sum(n * 2)", False),
        ("avg(i)", False),
        ("avg(n)", False),
        ("max(d)", False),
        ("count(d)", False),
        ("median(d)", False),
    ],
)
def test_aggregates(aggregate: str, depends: bool) -> None:
    found = order_dependence(_read(f"SELECT k, {aggregate} AS x FROM t GROUP BY k"))
    assert (("", "x") in found.values, found.decisive) == (depends, None)


SUMS = "(SELECT k, sum(d) AS x, count(*) AS n FROM t GROUP BY k)"


@pytest.mark.parametrize(
    ("text", "decides"),
    [
        (f"SELECT g.x + 1 AS y FROM {SUMS} g", False),
        (f"SELECT g.n FROM {SUMS} g WHERE g.n > 1", False),
        (f"SELECT g.k FROM {SUMS} g WHERE g.x > 1", True),
        (f"SELECT t.k FROM t JOIN {SUMS} g ON g.x = t.d", True),
        (f"SELECT t.k FROM t LEFT JOIN {SUMS} g ON g.x = t.d", True),
        (f"SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM {SUMS} g WHERE g.x > t.d)", True),
        (f"SELECT g.x, count(*) AS c FROM {SUMS} g GROUP BY g.x", True),
        (f"SELECT g.n, max(g.x) AS c FROM {SUMS} g GROUP BY g.n", False),
        ("SELECT k FROM t GROUP BY k HAVING sum(d) > 1", True),
        (f"SELECT g.k, rank() OVER (PARTITION BY g.n ORDER BY g.x) AS r FROM {SUMS} g", False),
        (f"SELECT g.k, rank() OVER (PARTITION BY g.x ORDER BY g.k) AS r FROM {SUMS} g", True),
        (f"SELECT g.x FROM {SUMS} g UNION ALL SELECT d FROM t", False),
        (f"SELECT g.x FROM {SUMS} g UNION SELECT d FROM t", True),
        (f"SELECT d FROM t EXCEPT SELECT g.x FROM {SUMS} g", True),
        (f"SELECT g.k, g.x FROM {SUMS} g ORDER BY g.x LIMIT 3", True),
        (f"SELECT g.k FROM {SUMS} g ORDER BY g.k LIMIT 3", False),
    ],
)
def test_where_such_a_value_decides(text: str, decides: bool) -> None:
    assert (order_dependence(_read(text)).decisive is not None) is decides
