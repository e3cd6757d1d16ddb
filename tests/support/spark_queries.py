"""Queries that only Spark understands, or understands in its own way; tables for them, and changes of these tables."""

from __future__ import annotations

TABLES = (
    "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, g STRING, h STRING, x INT, m DECIMAL(10,2), f DOUBLE, d DATE, ts TIMESTAMP,"
    " n TIMESTAMP_NTZ, arr ARRAY<INT>, st STRUCT<p: INT, q: STRING>, mp MAP<STRING, INT>, ok BOOLEAN)",
    "CREATE TABLE u (id INT, t_id INT, g STRING, z INT, c CHAR(5), v VARCHAR(10))",
    "CREATE TABLE e (k INT, w INT)",
    "CREATE TABLE j (id INT, doc VARIANT)",
)


def _t(*rows: tuple[int, str | None, str | None, int | None, str]) -> str:
    """Rows of t, from its first four columns and an array."""

    def sql(value: str | int | None) -> str:
        return "NULL" if value is None else repr(value)

    values = [
        f"({id}, {sql(g)}, {sql(h)}, {sql(x)}, {id}.50, {sql(x)} + 0.25D, DATE'2024-01-0{id}', TIMESTAMP'2024-01-0{id} 0{id}:30:00',"
        f" TIMESTAMP_NTZ'2024-02-0{id} 12:00:00', {arr}, named_struct('p', {sql(x)}, 'q', {sql(h)}), map('k', {sql(x)}, 'l', {id}),"
        f" {sql(x)} % 2 = 0)"
        for id, g, h, x, arr in rows
    ]
    return f"INSERT INTO t VALUES {', '.join(values)}"


START = (
    _t((1, "a", "p", 1, "array(1, 2)"), (2, "a", "q", 2, "array()"), (3, "b", "p", None, "NULL"),
       (4, None, "p", 4, "array(3, NULL)"), (5, "b", None, 4, "array(1)"), (6, "c", "q", 0, "array(5)")),
    "INSERT INTO u VALUES (1, 1, 'a', 10, 'ab', 'ab'), (2, 1, 'a', 20, 'cd', 'cd '), (3, 2, NULL, NULL, NULL, NULL),"
    " (4, NULL, 'b', 40, 'a', 'p'), (5, 9, 'z', 4, 'p', 'q')",
    "INSERT INTO j SELECT id, parse_json(doc) FROM VALUES (1, '{\"a\": 1, \"b\": [1, 2]}'), (2, '{\"a\": 2}') AS v (id, doc)",
)  # fmt: skip

CHANGES = (
    (
        _t((7, "a", "q", 7, "array(7, 8)"), (8, "d", None, None, "array()")),
        "UPDATE t SET x = 3, g = 'b' WHERE id = 2",
        "DELETE FROM t WHERE id = 5",
        "INSERT INTO u VALUES (6, 7, 'd', 2, 'q', 'p'), (7, 7, 'd', 2, 'q', 'p')",
        "UPDATE u SET z = 3, t_id = 4 WHERE id = 1",
        "DELETE FROM u WHERE id = 3",
        "INSERT INTO e VALUES (1, 1), (2, NULL), (NULL, 3), (4, 4)",
        "INSERT INTO j SELECT 3, parse_json('{\"a\": 1}')",
    ),
    (
        "DELETE FROM t WHERE id <> 1",
        "UPDATE t SET g = NULL WHERE id = 1",
        "DELETE FROM u",
        "DELETE FROM e",
        "DELETE FROM j WHERE id = 1",
    ),
)
"""A table that was empty filled, and changes of every kind in others; then tables emptied."""

KEPT = {
    # groups
    "rollup_after_keys": "SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g WITH ROLLUP",
    "cube_after_keys": "SELECT g, h, sum(x) AS s FROM t GROUP BY g, h WITH CUBE",
    "sets_after_keys": "SELECT g, h, sum(x) AS s FROM t GROUP BY g, h GROUPING SETS ((g, h), g, ())",
    "nested_sets": "SELECT g, h, count(*) AS n FROM t GROUP BY GROUPING SETS (ROLLUP (g, h), CUBE (g))",
    "mixed_sets": "SELECT g, h, x, count(*) AS n FROM t GROUP BY g, ROLLUP (h), CUBE (x)",
    "rollup_of_pairs": "SELECT g, h, x, count(*) AS n FROM t GROUP BY ROLLUP ((g, h), x)",
    "grouping": "SELECT g, h, grouping(g) AS gg, grouping_id() AS a, grouping_id(g, h) AS b FROM t GROUP BY g, h WITH ROLLUP",
    "rollup_having": "SELECT g, sum(x) AS s FROM t GROUP BY ROLLUP (g) HAVING grouping(g) = 0 OR sum(x) > 3",
    "same_set_twice": "SELECT g, count(*) AS n FROM t GROUP BY GROUPING SETS ((g), (g), ())",
    "rollup_positions": "SELECT g, h, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)",
    "rollup_key_in_aggregate": "SELECT x, sum(x) AS s, count(x) AS n FROM t GROUP BY CUBE (x)",
    "rollup_window": "SELECT g, sum(x) AS s, rank() OVER (ORDER BY sum(x)) AS r FROM t GROUP BY ROLLUP (g)",
    "rollup_of_nothing": "SELECT k, sum(w) AS s FROM e GROUP BY ROLLUP (k)",
    "empty_set_only": "SELECT sum(w) AS s FROM e GROUP BY GROUPING SETS (())",
    "group_all": "SELECT upper(g) AS u, x + 1 AS y, count(*) + 1 AS n FROM t GROUP BY ALL",
    "group_alias": "SELECT x % 2 AS p, count(*) AS cnt FROM t GROUP BY p HAVING cnt > 0",
    "group_shadowed": "SELECT g AS h, count(*) AS n FROM t GROUP BY h, g",
    "group_constant": "SELECT 1 AS one, count(*) AS n FROM t GROUP BY 1",
    "group_by_subquery": "SELECT (SELECT max(z) FROM u WHERE u.t_id = t.id) AS mz, count(*) AS n FROM t GROUP BY 1",
    # order
    "order_all": "SELECT g, x, id FROM t ORDER BY ALL LIMIT 3",
    "order_aggregate": "SELECT g, sum(x) AS s FROM t GROUP BY g ORDER BY max(id) DESC, g LIMIT 2",
    "limit_all": "SELECT id FROM t LIMIT ALL",
    "limit_expression": "SELECT id FROM t ORDER BY id LIMIT 1 + 1",
    # lateral column aliases
    "lateral_alias": "SELECT x + 1 AS a, a * 2 AS b, b + a AS c FROM t",
    "lateral_alias_group": "SELECT g, sum(x) AS s, s + 1 AS s1 FROM t GROUP BY g",
    "lateral_alias_shadowed": "SELECT x + 1 AS id, id AS z FROM t",
    # other ways to write a query
    "pipe_aggregate": "FROM t |> AGGREGATE sum(x) AS s GROUP BY g",
    "from_first": "FROM t SELECT id, x WHERE x > 1",
    "table": "TABLE e",
    "tables_united": "TABLE e UNION ALL TABLE e",
    "identifier": "SELECT id, IDENTIFIER('x') AS xx FROM t",
    "values": "SELECT t.id, v.col2 FROM t JOIN VALUES (1, 'one'), (2, 'two') AS v ON t.id = v.col1",
    "struct_star": "SELECT id, st.* FROM t",
    "struct_field": "SELECT id, st.p + 1 AS p1, st.q FROM t WHERE st.q = 'p'",
    "struct_groups": "SELECT st.q AS q, count(DISTINCT st.p) AS n, sum(t.st.p) AS s FROM t GROUP BY st.q",
    "struct_partners": "SELECT a.id FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.st.p = a.st.p AND b.id <> a.id)",
    "higher_order": "SELECT id, transform(arr, v -> v + x) AS a, filter(arr, v -> v > 1) AS b, transform(arr, (v, i) -> v * i) AS c,"
    " aggregate(arr, 0, (acc, v) -> acc + coalesce(v, 0)) AS d, exists(arr, v -> v = 2) AS e FROM t",
    "qualify": "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM t QUALIFY r = 1",
    "pivot": "SELECT * FROM (SELECT g, h, x FROM t) PIVOT (sum(x) AS s, count(*) AS n FOR h IN ('p' AS p, 'q' AS q))",
    "unpivot": "SELECT * FROM (SELECT id, x, id + 1 AS y FROM t) UNPIVOT INCLUDE NULLS (val FOR nm IN (x, y))",
    "lateral_view_outer": "SELECT id, p, a FROM t LATERAL VIEW OUTER posexplode(arr) q AS p, a",
    "lateral_subquery": "SELECT t.id, l.s FROM t, LATERAL (SELECT sum(z) AS s FROM u WHERE u.t_id = t.id) l",
    "lateral_left": "SELECT t.id, l.z FROM t LEFT JOIN LATERAL (SELECT z FROM u WHERE u.t_id = t.id) l ON true",
    "posexplode": "SELECT id, posexplode(arr) FROM t",
    "lateral_function": "SELECT t.id, q.a FROM t, LATERAL explode(t.arr) AS q(a)",
    "range": "SELECT r.id AS rid, t.x FROM range(3) r LEFT JOIN t ON t.id = r.id",
    # set operations
    # types and functions
    "collated_groups": "SELECT count(*) AS n FROM t GROUP BY g COLLATE UTF8_LCASE",
    "intervals": "SELECT id, d + INTERVAL 1 MONTH AS a, ts - INTERVAL '1 02:00:00' DAY TO SECOND AS b FROM t"
    " WHERE ts - TIMESTAMP'2024-01-01 00:00:00' > INTERVAL '1' DAY",
    "variant": "SELECT id, doc, variant_get(doc, '$.a', 'int') AS a FROM j",
    "variant_groups": "SELECT variant_get(doc, '$.a', 'int') AS a, count(*) AS n FROM j GROUP BY 1",
    "try": "SELECT id, try_add(x, 2147483647) AS a, try_divide(x, x) AS b, try_cast(g AS INT) AS c, try_element_at(mp, 'k') AS d FROM t",
    "try_sum": "SELECT g, try_sum(x) AS s FROM t GROUP BY g",
    "not_distinct_from": "SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.g IS NOT DISTINCT FROM u.g WHERE t.x IS DISTINCT FROM 4",
    "like_any": "SELECT id FROM t WHERE g LIKE ANY ('a%', 'b%') OR h NOT LIKE ALL ('p%', '%q')",
    "time_window": "SELECT window(ts, '1 day').start AS ws, count(*) AS n FROM t GROUP BY window(ts, '1 day')",
    "range_window": "SELECT id, sum(x) OVER (PARTITION BY h ORDER BY d RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s FROM t",
    "sample": "SELECT id FROM t TABLESAMPLE (100 PERCENT)",
    "sorted": "SELECT id, x FROM t DISTRIBUTE BY g SORT BY x",
    # joins and WITH
    "semi_using": "SELECT id, g FROM t LEFT SEMI JOIN (SELECT g FROM u) q USING (g)",
    "subquery_in_on": "SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.id = u.t_id AND u.z > (SELECT min(z) FROM u)",
    "shadowed_table": "WITH e AS (SELECT * FROM e WHERE k > 1) SELECT * FROM e",
    "recursive": "WITH RECURSIVE r(n) AS (SELECT min(id) FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r",
    # subqueries
    "having_subquery": "SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > (SELECT avg(x) FROM t) OR g IN (SELECT g FROM u)",
    "scalar_case_of_count": "SELECT id, (SELECT CASE WHEN count(*) = 0 THEN -1 ELSE max(z) END FROM u WHERE u.t_id = t.id) AS c FROM t",
    "scalar_coalesce": "SELECT id, (SELECT coalesce(sum(z), 0) FROM u WHERE u.t_id = t.id) AS c FROM t",
    "scalar_constant": "SELECT id, (SELECT max(7) FROM e WHERE e.k = t.id) AS c, (SELECT 1) AS one FROM t",
    "scalar_map": "SELECT k, (SELECT mp FROM t WHERE id = 1) AS c FROM e",
    "scalar_struct": "SELECT k, (SELECT st FROM t WHERE id = 1) AS c, (SELECT arr FROM t WHERE id = e.k) AS a FROM e",
    "aggregate_of_subquery": "SELECT u.g, sum(u.z * (SELECT sum(e.w) FROM e WHERE e.k = u.id)) AS s FROM u GROUP BY u.g",
    "sum_of_subquery": "SELECT sum(x + (SELECT max(w) FROM e)) AS s FROM t",
    "count_of_in": "SELECT g, count_if(x IN (SELECT w FROM e)) AS n FROM t GROUP BY g",
    "sum_of_exists": "SELECT g, sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id) THEN 1 ELSE 0 END) AS n FROM t GROUP BY g",
    "exists_outer_join": "SELECT id FROM t WHERE EXISTS (SELECT u.id FROM u LEFT JOIN e ON u.id = e.k AND t.x = u.z)",
    "window_in_subquery": "SELECT id FROM t WHERE x IN (SELECT rank() OVER (ORDER BY z) FROM u WHERE u.t_id = t.id)",
    "window_below_scalar": "SELECT id, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY z, id) AS r, t_id FROM u) q WHERE q.t_id = t.id) AS mr FROM t",
    "limit_in_scalar": "SELECT id, (SELECT z FROM u WHERE u.t_id = t.id ORDER BY z DESC NULLS LAST, id LIMIT 1) AS z FROM t",
    "two_levels_out": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id AND NOT EXISTS (SELECT 1 FROM e WHERE e.k = u.id))",
    "groups_in_scalar": "SELECT id FROM t WHERE 1 < (SELECT count(*) FROM u WHERE u.t_id = t.id GROUP BY u.t_id)",
    "union_in_in": "SELECT id FROM t WHERE x IN (SELECT z FROM u UNION SELECT w FROM e)",
    "aggregate_in_exists": "SELECT id FROM t WHERE EXISTS (SELECT max(z) FROM u WHERE u.t_id = t.id)",
    "scalar_over_from": "SELECT id, (SELECT sum(z) FROM (SELECT z FROM u WHERE u.t_id = t.id) q) AS m FROM t",
    "subquery_in_list": "SELECT id FROM t WHERE x IN (1, (SELECT max(w) FROM e))",
    "tuples": "SELECT id FROM t WHERE (id, x) = (1, 1) OR struct(id, x) IN (struct(2, 3))",
}  # fmt: skip
"""By a name for the view. All are answered by Spark, so all are kept."""

DEPARTURES = {
    "in": "SELECT id, x IN (SELECT w FROM e) AS i FROM t",
    "not_in": "SELECT id, x NOT IN (SELECT w FROM e) AS i FROM t",
    "in_without_nulls": "SELECT id, x IN (SELECT k FROM e WHERE k IS NOT NULL) AS i FROM t",
    "in_correlated": "SELECT id, x IN (SELECT z FROM u WHERE u.t_id = t.id) AS i FROM t",
    "in_case": "SELECT id, CASE WHEN x IN (SELECT w FROM e) THEN 'y' WHEN x NOT IN (SELECT w FROM e) THEN 'n' ELSE '?' END AS i FROM t",
    "in_or": "SELECT id FROM t WHERE x IN (SELECT w FROM e) OR g = 'a'",
    "not_in_or": "SELECT id FROM t WHERE x NOT IN (SELECT w FROM e) OR g = 'a'",
    "not_of_or": "SELECT id FROM t WHERE NOT (x IN (SELECT w FROM e) OR g = 'a')",
    "in_is_null": "SELECT id, (x IN (SELECT w FROM e)) IS NULL AS i FROM t",
    "in_types": "SELECT id, x IN (SELECT m FROM t) AS i FROM t",
    "null_in": "SELECT id, NULL IN (SELECT w FROM e) AS i, 1 IN (SELECT w FROM e) AS j FROM t",
    "pairs_in": "SELECT id FROM t WHERE (id, x) IN (SELECT k, w FROM e)",
    "pairs_not_in": "SELECT id FROM t WHERE (id, x) NOT IN (SELECT k, w FROM e)",
    "pairs_in_value": "SELECT id, (id, x) IN (SELECT k, w FROM e) AS i FROM t",
    "pairs_in_or": "SELECT id FROM t WHERE (id, x) NOT IN (SELECT k, w FROM e) OR g = 'a'",
    "exists_value": "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id) AS i FROM t",
    "exists_or": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.z > t.x) OR NOT EXISTS (SELECT 1 FROM e WHERE e.k = t.id)",
    "char": "SELECT id, c, length(c) AS l, c = v AS cv, c || '|' AS cc, CASE c WHEN 'ab' THEN 1 WHEN 'p' THEN 2 END AS k FROM u",
    "char_equal": "SELECT id FROM u WHERE c = 'ab' OR c IN ('cd', 'p')",
    "char_join": "SELECT t.id, u.id AS uid FROM t JOIN u ON t.h = u.c",
    "char_in": "SELECT id, c IN (SELECT h FROM t) AS i FROM u",
    "char_in_where": "SELECT id FROM u WHERE c IN (SELECT h FROM t)",
    "char_groups": "SELECT c, count(*) AS n, min(v) AS v FROM u GROUP BY c",
    "char_union": "SELECT c FROM u UNION SELECT h FROM t",
}  # fmt: skip
"""Where Spark answers otherwise than the standard, or than one might expect (docs/concepts/spark-answers.md)."""

_NOT_ANALYSED = "Spark does not understand Viewkeeper's reading of the query"
_ONE_GROUP = "a correlated subquery has LIMIT, or an aggregate without GROUP BY, where rows are compared"

MISREAD = DEPARTURES["null_in"]

RECOMPUTED = {
    "rollup_window": "GROUPING SETS, ROLLUP or CUBE meet subqueries or window functions in one SELECT",
    "group_constant": "it groups by a constant",
    "group_by_subquery": "a subquery is correlated with a query that is not the one around it",
    "limit_expression": "LIMIT or OFFSET is not a plain number",
    "identifier": "identifier is no function of Spark",
    "values": "its query is not understood well enough",
    "struct_star": "its columns are not known one by one",
    "lateral_subquery": "it uses a LATERAL subquery",
    "lateral_left": "it uses a LATERAL subquery",
    "posexplode": "posexplode makes columns that have no names",
    "range": "it calls a function that makes a table",
    "collated_groups": _NOT_ANALYSED,
    "try_sum": "try_sum is NULL after an overflow, which depends on the order of the rows",
    "sample": "it uses TABLESAMPLE, or PIVOT or UNPIVOT in a special way",
    "sorted": "it uses SORT BY",
    "subquery_in_on": "it has a subquery in the condition of a join",
    "recursive": "it uses a recursive WITH clause",
    "scalar_constant": "it reads no table",
    "scalar_map": _NOT_ANALYSED,
    "exists_outer_join": "the condition of an outer or semi join reads a query around it",
    "window_in_subquery": "a correlated subquery uses window functions",
    "limit_in_scalar": _ONE_GROUP,
    "aggregate_in_exists": _ONE_GROUP,
    "scalar_over_from": "a query in FROM, or in a set operation, is correlated with the query around it",
    "spark_null_in": "on a sample of rows, Viewkeeper's reading of the query and Spark give different answers",
    "spark_pairs_in_or": "NOT IN compares rows under OR or CASE, or as a value",
}
"""Why some of them are recomputed; a departure's name starts with spark_."""
