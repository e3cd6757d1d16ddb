"""Cases that were wrong once, or that others got wrong. A failing random case prints itself as such an expression.

Whole cases and not seeds: a seed means another case as soon as the generator changes.
"""

from __future__ import annotations

from viewkeeper.testing import Case, case_of

_PAIRS = "CREATE TABLE l (k INT, v STRING); CREATE TABLE r (k INT, w INT)"
_SHOP = (
    "CREATE TABLE p (id INT PRIMARY KEY, name STRING);"
    "CREATE TABLE c (id INT PRIMARY KEY, p INT NOT NULL REFERENCES p, price INT)"
)
_SALES = "(SELECT item, q1, qty FROM sale)"
_NEVER_FOUND = "NOT EXISTS (SELECT 1 FROM r AS s WHERE s.w = l.k)"

REGRESSIONS: tuple[Case, ...] = (
    case_of(
        "CREATE TABLE p (id INT PRIMARY KEY, code INT NOT NULL UNIQUE, name STRING);"
        "CREATE TABLE c (id INT PRIMARY KEY, code INT NOT NULL REFERENCES p (code))",
        "SELECT c.id, p.name FROM c JOIN p ON p.code = c.code",
        [
            {"p": [(1, 10, "x"), (2, 20, "y")], "c": [(1, 10), (2, 20)]},
            {"p": [(3, 10, "z"), (2, 20, "y")], "c": [(1, 10), (2, 20)]},
            {"p": [(3, 20, "z"), (2, 10, "y")], "c": [(1, 10), (2, 20)]},
        ],
        name="a parent with another primary key takes the place of one for its children",
    ),
    case_of(
        _PAIRS,
        "SELECT count(DISTINCT b.w) AS n FROM (SELECT k FROM l GROUP BY CUBE (k)) AS a, r AS b WHERE a.k = b.k",
        [{"l": [(1, "a")], "r": [(1, 1)]}, {"l": [(1, "a"), (2, "b")], "r": [(1, 1), (2, 2)]}],
        name="a table after a comma in a query that is recomputed is used",
    ),
    case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT k, bit_or(v) AS o, bit_and(v) AS a, bit_xor(v) AS x FROM t GROUP BY k",
        [
            {"t": [(1, 0), (1, None), (2, -1), (2, None), (3, 6), (3, 6), (3, 3)]},
            {"t": [(1, None), (2, None), (3, 6), (3, 3)]},
            {"t": [(1, None), (2, 0), (3, 6), (3, 6), (3, 6)]},
        ],
        name="bits of groups that lose their last value are NULL, and copies count",
    ),
    case_of(
        _PAIRS,
        "SELECT v, k FROM l",
        [{"l": [(None, None), (None, None), (1, "a")], "r": []}, {"l": [(None, None)], "r": []}],
        name="a row with NULLs is found when it is deleted",
    ),
    case_of(
        _PAIRS,
        "SELECT k, count(*) AS n FROM l GROUP BY k",
        [{"l": [(None, "a")], "r": []}, {"l": [(None, "a"), (None, "b")], "r": []}],
        name="there is one group of NULLs",
    ),
    case_of(
        _PAIRS,
        "SELECT l.k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        [
            {"l": [(1, "a"), (1, "a")], "r": [(1, 1)]},
            {"l": [(1, "a"), (1, "a")], "r": [(1, 1), (1, 2)]},
            {"l": [(1, "a"), (1, "a")], "r": []},
        ],
        name="EXISTS keeps the duplicates of the outer row",
    ),
    case_of(
        _PAIRS,
        "SELECT l.k FROM l WHERE l.v = 'a' OR EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
        [
            {"l": [(1, "a"), (2, "b")], "r": []},
            {"l": [(1, "a"), (2, "b")], "r": [(1, 0), (2, 0)]},
            {"l": [(1, None), (2, "a")], "r": [(2, 0)]},
        ],
        name="EXISTS under OR",
    ),
    case_of(
        _PAIRS,
        "SELECT l.v, r.w FROM l LEFT JOIN r ON r.k = l.k AND r.w > 1",
        [
            {"l": [(1, "a"), (None, "b")], "r": [(1, 1)]},
            {"l": [(1, "a"), (None, "b")], "r": [(1, 2), (1, 2)]},
            {"l": [(1, "a"), (None, "b")], "r": [(1, 0)]},
        ],
        name="the last match of an outer join comes and goes",
    ),
    case_of(
        _PAIRS,
        "SELECT v FROM l WHERE k NOT IN (SELECT k FROM r)",
        [
            {"l": [(1, "a"), (None, "b")], "r": []},
            {"l": [(1, "a"), (None, "b")], "r": [(None, 1)]},
            {"l": [(1, "a"), (None, "b")], "r": [(2, 1)]},
        ],
        name="NOT IN with NULLs on both sides",
    ),
    case_of(
        _PAIRS,
        "SELECT x.k, y.v FROM l x JOIN l y ON x.k = y.k",
        [
            {"l": [(1, "a"), (2, "b")], "r": []},
            {"l": [(1, "c"), (1, "d"), (3, "b")], "r": []},
        ],
        name="a self-join of which both sides change",
    ),
    case_of(
        _SHOP,
        "SELECT p.name, sum(c.price) AS s FROM c JOIN p ON p.id = c.p GROUP BY p.name",
        [
            {"p": [(1, "x"), (2, "y")], "c": [(1, 1, 5), (2, 2, None)]},
            {"p": [(1, "x"), (3, "x")], "c": [(1, 3, 5), (3, 3, 7)]},
            {"p": [(3, "z")], "c": [(3, 3, None)]},
        ],
        name="parent and child change in one cycle",
    ),
    case_of(
        _PAIRS,
        "SELECT l.v, (SELECT count(*) FROM r WHERE r.k = l.k) AS n FROM l",
        [{"l": [(1, "a"), (2, "b")], "r": [(1, 1)]}, {"l": [(1, "a"), (2, "b")], "r": []}],
        name="a correlated count of nothing is 0",
    ),
    case_of(
        _PAIRS,
        "SELECT count(*) AS n, sum(w) AS s FROM r",
        [{"l": [], "r": [(1, 1)]}, {"l": [], "r": []}, {"l": [], "r": [(1, None)]}],
        name="one group of nothing is a row",
    ),
    case_of(
        _PAIRS,
        "SELECT l.v, r.w FROM l LEFT JOIN r ON l.k <=> r.k",
        [{"l": [(None, "a")], "r": []}, {"l": [(None, "a")], "r": [(None, 1)]}],
        name="a limit along <=> lets NULLs through",
    ),
    *(
        case_of(
            _PAIRS,
            f"SELECT r.w, {call} AS m FROM l LEFT JOIN r ON l.k = r.k {rest}",
            [
                {"l": [(1, "a"), (2, "b")], "r": [(1, 5), (2, 6)]},
                {"l": [(1, "a"), (2, "b")], "r": [(2, 6)]},
            ],
            name=f"the inner side of an outer join is not limited to the affected {what}",
        )
        for what, call, rest in (
            ("groups", "max(l.v)", "GROUP BY r.w"),
            ("groups below explode", "max(l.v)", "LATERAL VIEW explode(array(1, 2)) e AS x GROUP BY r.w"),
            ("groups below NOT EXISTS", "max(l.v)", f"WHERE {_NEVER_FOUND} GROUP BY r.w"),
            (
                "partitions",
                "rank() OVER (PARTITION BY r.w ORDER BY l.v NULLS FIRST)",
                f"WHERE {_NEVER_FOUND}",
            ),
        )
    ),
    *(
        case_of(
            _PAIRS,
            "SELECT l.k, rank() OVER (PARTITION BY l.k ORDER BY l.v NULLS FIRST) AS n FROM l WHERE l.k IN "
            f"(SELECT r.w FROM r {kept})",
            [
                {"l": [(1, "a")], "r": [(7, 3)]},
                {"l": [(1, "a"), (3, "c")], "r": [(7, 3)]},
            ],
            name=f"rows kept by {what} are not limited by its condition",
        )
        for what, kept in (
            ("a LEFT JOIN", "LEFT JOIN l x ON r.w = x.k AND r.k = x.k"),
            ("a FULL JOIN", "FULL JOIN l x ON r.w = x.k AND r.k = x.k"),
            ("NOT EXISTS", "WHERE NOT EXISTS (SELECT 1 FROM l x WHERE r.w = x.k AND r.k = x.k)"),
        )
    ),
    *(
        case_of(
            "CREATE TABLE sale (id INT PRIMARY KEY, item STRING, qty INT, q1 INT, q2 INT)",
            query,
            [
                {
                    "sale": [
                        (1, "a", 5, 1, 2),
                        (2, "a", 3, 2, 2),
                        (3, None, 4, 1, None),
                        (4, "b", None, None, 3),
                    ]
                },
                {"sale": [(1, "a", 7, 1, 2), (3, None, 4, 2, None), (4, "b", 1, 2, 3), (5, "c", 1, 1, 1)]},
                {"sale": [(5, "c", 9, 1, 1), (6, "c", 5, 2, 3), (4, "b", 1, None, 3)]},
            ],
            name=name,
        )
        for name, query in (
            ("PIVOT", f"SELECT * FROM {_SALES} PIVOT (sum(qty) AS s FOR q1 IN (1 AS one, 2 AS two))"),
            (
                "PIVOT with two aggregates, under a filter",
                f"SELECT p.item, p.one_m + 1 AS m FROM {_SALES} PIVOT (sum(qty) AS s, max(qty) AS m "
                "FOR q1 IN (1 AS one, 2 AS two)) AS p WHERE p.two_s > 1",
            ),
            (
                "PIVOT by two columns",
                "SELECT * FROM (SELECT item, q1, q2, qty FROM sale) PIVOT "
                "(sum(qty) FOR (q1, q2) IN ((1, 2) AS one, (2, 3) AS two))",
            ),
            ("UNPIVOT", "SELECT * FROM sale UNPIVOT (v FOR quarter IN (q1 AS `Q1`, q2))"),
            (
                "UNPIVOT keeping NULLs, by the name that was written",
                "SELECT id, v FROM sale UNPIVOT INCLUDE NULLS (v FOR q IN (q1 AS `Q1`, q2)) WHERE q = 'Q1'",
            ),
            (
                "QUALIFY",
                "SELECT id, item FROM sale QUALIFY row_number() OVER (PARTITION BY item ORDER BY id) = 1",
            ),
            (
                "QUALIFY over groups",
                "SELECT q1, item, sum(qty) AS s FROM sale GROUP BY q1, item HAVING count(*) > 0 "
                "QUALIFY rank() OVER (PARTITION BY q1 ORDER BY sum(qty)) = 1",
            ),
            (
                "a named window",
                "SELECT id, sum(qty) OVER w AS s, max(qty) OVER w AS m FROM sale WINDOW w AS "
                "(PARTITION BY item ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            ),
            (
                "a subquery in HAVING that reads a key of the groups",
                "SELECT item, count(*) AS n FROM sale s GROUP BY item HAVING count(*) > "
                "(SELECT count(*) FROM sale t WHERE t.item = s.item AND t.qty > 3)",
            ),
            (
                "EXISTS in HAVING that reads a key of the groups",
                "SELECT item, count(*) AS n FROM sale s GROUP BY item HAVING EXISTS "
                "(SELECT 1 FROM sale t WHERE t.item = s.item AND t.qty > 3)",
            ),
        )
    ),
    case_of(
        "CREATE TABLE t (k INT, v INT, w INT)",
        "SELECT t.k, min_by(t.v, t.w) AS a, array_join(collect_list(CAST(t.w AS STRING)), ',') AS b FROM t "
        "GROUP BY t.k HAVING array_join(collect_list(CAST(t.w AS STRING)), ',') > ''",
        [
            {"t": [(1, 1, 1), (1, 2, 1), (2, None, None), (3, 1, None)]},
            {"t": [(1, 2, 1), (2, 5, None), (3, 1, None), (3, 2, 2)]},
        ],
        name="a field of an element of a list is no column of the group",
    ),
    case_of(
        _PAIRS,
        "SELECT k, w FROM r UNION ALL SELECT k, CAST(k AS INT) FROM l",
        [{"l": [(1, "a")], "r": [(2, 2)]}, {"l": [(3, "a")], "r": [(2, 3)]}],
        name="columns of the right side of a union that are called alike",
    ),
    *(
        case_of(
            "CREATE TABLE t (k INT, x INT, d DOUBLE); CREATE TABLE p (k INT, name STRING)",
            query,
            [
                {"t": [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3), (2, 1, 0.7)], "p": [(1, "a"), (2, "b")]},
                {"t": [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3), (2, 1, 0.7)], "p": [(2, "b")]},
                {"t": [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3), (1, 4, 0.4)], "p": [(1, "c")]},
            ],
            name=f"a sum of DOUBLE {where} has other bits when it is computed again",
        )
        for where, query in (
            (
                "under a join",
                "SELECT p.name, s.d FROM p JOIN (SELECT k, sum(d) AS d FROM t GROUP BY k) AS s ON s.k = p.k",
            ),
            (
                "in a union",
                "SELECT k, sum(d) AS d FROM t GROUP BY k UNION ALL SELECT k, CAST('0.5' AS DOUBLE) FROM p",
            ),
            ("as a scalar", "SELECT p.k, (SELECT sum(t.d) FROM t WHERE t.k = p.k) AS d FROM p"),
            (
                "under a filter",
                "SELECT s.k FROM (SELECT k, avg(d) AS d FROM t GROUP BY k) AS s WHERE s.d > 0.25",
            ),
            (
                "in first rows",
                "SELECT k, d FROM (SELECT k, sum(d) AS d FROM t GROUP BY k) AS s ORDER BY d DESC LIMIT 1",
            ),
            ("of a window", "SELECT x, sum(d) OVER (PARTITION BY k) AS d FROM t"),
            (
                "of a window under a join",
                "SELECT p.name, s.d FROM p JOIN (SELECT k, sum(d) OVER (PARTITION BY k) AS d FROM t) AS s ON s.k = p.k",
            ),
        )
    ),
    case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT k, count(v) / count(*) AS share, 6 / sum(v) AS part FROM t GROUP BY k HAVING count(*) > 1 OR sum(v) > 0",
        [
            {"t": [(1, 1), (1, 2), (2, 3), (3, 1), (3, None)]},
            {"t": [(2, 3), (2, 4), (3, 0), (4, 1)]},
        ],
        name="what is shown of a group that is gone is not computed",
    ),
    case_of(
        "CREATE TABLE t (k INT, v INT)",
        "SELECT count(*) AS n, sum(v) AS s FROM t GROUP BY GROUPING SETS (())",
        [{"t": [(1, 1)]}, {"t": []}, {"t": [(1, 2)]}],
        name="GROUPING SETS of nothing is one group in any case",
    ),
)
