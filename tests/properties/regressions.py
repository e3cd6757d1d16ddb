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
_NEVER_FOUND = "NOT EXISTS (SELECT 1 FROM r AS s WHERE s.w = l.k)"

REGRESSIONS: tuple[Case, ...] = (
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
)
