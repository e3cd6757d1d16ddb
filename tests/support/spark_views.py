"""Random views in all of Spark SQL: what only Spark has, or where other databases answer otherwise.

Two small tables with a column of every kind, rows with odd values, and queries over them that have one answer: LIMIT only
with ORDER BY ALL, lists only sorted, no floating-point sums that depend on their order beyond rounding.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

TABLES = """
CREATE TABLE m (k INT PRIMARY KEY, g STRING, i INT, l BIGINT, d DECIMAL(10,2), f DOUBLE, r FLOAT, s STRING, c CHAR(3), y DATE,
  ts TIMESTAMP, b BOOLEAN, arr ARRAY<INT>, mp MAP<STRING,INT>, st STRUCT<x: INT, y: STRING>);
CREATE TABLE n (k INT, g STRING, i INT, l BIGINT, f DOUBLE, s STRING, y DATE, z BINARY)
"""

_VALUES = {
    "g": ("'a'", "'a'", "'b'", "'B'", "''", "NULL"),
    "i": ("0", "1", "1", "2", "-1", "7", "2147483647", "-2147483648", "NULL"),
    "l": ("0", "1", "-5", "4000000000", "9223372036854775807", "NULL"),
    "d": ("0.00", "1.50", "-1.50", "99999999.99", "0.01", "NULL"),
    "f": ("0.0D", "-0.0D", "0.1D", "0.2D", "-2.5D", "1e10D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)",
          "CAST('-Infinity' AS DOUBLE)", "NULL"),
    "r": ("0.0F", "-0.0F", "0.1F", "3.5F", "CAST('NaN' AS FLOAT)", "NULL"),
    "s": ("'a'", "'A'", "'ab'", "' a'", "'a '", "'é'", "'%'", "''", "'1'", "NULL"),
    "c": ("'a'", "'ab'", "'abc'", "''", "NULL"),
    "y": ("DATE'2024-02-29'", "DATE'2024-03-01'", "DATE'0001-01-01'", "DATE'1582-10-15'", "DATE'9999-12-31'", "NULL"),
    "ts": ("TIMESTAMP'2024-02-29 12:30:00.123456'", "TIMESTAMP'2024-03-31 02:30:00'", "TIMESTAMP'0001-01-01 00:00:00'",
           "TIMESTAMP'9999-12-31 23:59:59.999999'", "TIMESTAMP'1969-12-31 23:59:59'", "NULL"),
    "b": ("true", "false", "NULL"),
    "arr": ("array(1, 2, 2)", "array(NULL, 3)", "CAST(array() AS ARRAY<INT>)", "array(7)", "NULL"),
    "mp": ("map('a', 1)", "map('a', 2, 'b', NULL)", "map('b', 1, 'a', 2)", "CAST(map() AS MAP<STRING,INT>)", "NULL"),
    "st": ("named_struct('x', 1, 'y', 'a')", "named_struct('x', CAST(NULL AS INT), 'y', 'b')", "NULL"),
    "z": ("X''", "X'00FF'", "X'61'", "NULL"),
}  # fmt: skip
_M = ("k", "g", "i", "l", "d", "f", "r", "s", "c", "y", "ts", "b", "arr", "mp", "st")
_N = ("k", "g", "i", "l", "f", "s", "y", "z")

FRAGILE = "k >= 1000"
"""Rows that may make a query fail: they go when the data is mended."""


@dataclass
class RandomChanges:
    """Statements that change the two tables; keys of m are never given twice."""

    generator: random.Random
    fresh: int = 10

    def first(self) -> list[str]:
        return [self._insert("m", 8), self._insert("n", 8)]

    def some(self) -> list[str]:
        """One to three statements, each a commit."""
        return [self._one() for _ in range(self.generator.choice((1, 2, 2, 3)))]

    def _one(self) -> str:
        table = self.generator.choice("mmn")
        columns = [each for each in (_M if table == "m" else _N) if each != "k"]
        one = self.generator.choice(columns)
        value = self.generator.choice(_VALUES[one])
        where = self.generator.choice(
            ("k % 3 = 0", "k % 3 = 1", "g = 'a'", "i IS NULL", "i > 0", "k < 5", "b" if table == "m" else "y IS NULL", "true")
        )  # fmt: skip
        kind = self.generator.choice(("insert", "insert", "insert", "update", "update", "update", "delete"))
        match kind:
            case "insert":
                return self._insert(table, self.generator.randint(1, 3))
            case "update":
                return f"UPDATE {table} SET {one} = {value} WHERE {where}"
            case _:
                return f"DELETE FROM {table} WHERE {'k % 4 = 2' if where == 'true' else where}"

    def _insert(self, table: str, rows: int) -> str:
        made = ", ".join(f"({', '.join(self._row(table))})" for _ in range(rows))
        return f"INSERT INTO {table} VALUES {made}"

    def _row(self, table: str) -> list[str]:
        columns = _M if table == "m" else _N
        values = {name: self.generator.choice(_VALUES[name]) for name in columns if name != "k"}
        self.fresh += 1
        key = self.fresh if table == "m" else self.generator.choice((1, 2, 3, self.fresh))
        if any(values.get(name) in ("2147483647", "-2147483648", "9223372036854775807") for name in "il"):
            key = 1000 + self.fresh
        return [str(key) if name == "k" else values[name] for name in columns]


@dataclass(frozen=True)
class RandomQueries:
    generator: random.Random

    def query(self) -> str:
        form = self.generator.choice(_FORMS)
        return getattr(self, form)()  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------------ parts

    def _pick(self, among: Sequence[str]) -> str:
        return self.generator.choice(among)

    def _chance(self, share: float) -> bool:
        return self.generator.random() < share

    def _of(self, kind: str, a: str = "") -> str:
        """An expression of a kind over the columns of m."""
        text = self._pick(_EXPRESSIONS[kind])
        if a:
            text = text.replace("@", f"{a}.")
        return text.replace("@", "")

    def _any(self, a: str = "", comparable: bool = False) -> str:
        kinds = ("int", "int", "string", "string", "double", "decimal", "date", "bool", "time")
        return self._of(self._pick(kinds if comparable else (*kinds, "complex")), a)

    def _condition(self, a: str = "") -> str:
        one = self._of("bool", a)
        if self._chance(0.3):
            return f"({one}) {self._pick(('AND', 'OR'))} ({self._of('bool', a)})"
        return f"NOT ({one})" if self._chance(0.15) else one

    def _where(self, a: str = "", share: float = 0.5) -> str:
        return f" WHERE {self._condition(a)}" if self._chance(share) else ""

    def _aggregates(self, a: str = "", most: int = 3) -> list[str]:
        found = []
        for at in range(self.generator.randint(1, most)):
            kind, calls = self._pick(list(_AGGREGATES)), _AGGREGATES
            call = self._pick(calls[kind]).format(e=self._of(kind, a))
            if self._chance(0.12):
                call += f" FILTER (WHERE {self._condition(a)})"
            found.append(f"{call} AS a{at}")
        return found

    # ------------------------------------------------------------------------------------------------ forms

    def plain(self) -> str:
        items = [f"{self._any()} AS c{at}" for at in range(self.generator.randint(1, 4))]
        return f"SELECT {', '.join(items)} FROM m{self._where()}"

    def distinct(self) -> str:
        items = [f"{self._any(comparable=True)} AS c{at}" for at in range(self.generator.randint(1, 2))]
        return f"SELECT DISTINCT {', '.join(items)} FROM m{self._where()}"

    def lateral_alias(self) -> str:
        return f"SELECT {self._of('int')} AS p, p % 5 AS q, q IS NULL AS e FROM m{self._where()}"

    def value_subqueries(self) -> str:
        inside = self._pick(
            (
                "i IN (SELECT k FROM n)", "g NOT IN (SELECT g FROM n WHERE g IS NOT NULL)", "(i, g) IN (SELECT i, g FROM n)",
                "EXISTS (SELECT 1 FROM n WHERE n.g = m.g)", "(SELECT count(*) FROM n WHERE n.g = m.g)",
                "(SELECT max(n.i) FROM n WHERE n.i < 5)", "i IN (1, 2, NULL)", "coalesce(i IN (SELECT i FROM n), false)",
                "CASE WHEN EXISTS (SELECT 1 FROM n WHERE n.i = m.i) THEN s ELSE g END",
            )
        )  # fmt: skip
        return f"SELECT k, {inside} AS p, {self._any()} AS c FROM m{self._where()}"

    def grouped(self) -> str:
        keys = [f"{self._any(comparable=True)}" for _ in range(self.generator.randint(1, 2))]
        having = self._pick(("", "", " HAVING count(*) > 1", " HAVING count(i) > 0"))
        shown = ", ".join([*(f"{key} AS g{at}" for at, key in enumerate(keys)), *self._aggregates()])
        by = self._pick((", ".join(keys), "ALL", ", ".join(str(at + 1) for at in range(len(keys)))))
        return f"SELECT {shown} FROM m{self._where()} GROUP BY {by}{having}"

    def total(self) -> str:
        return f"SELECT {', '.join(self._aggregates())} FROM m{self._where()}"

    def grouping_sets(self) -> str:
        one, other = self._pick(("g", "s", "c", "b")), self._pick(("i", "y", "d"))
        by = self._pick(
            (
                f"{one}, {other} WITH ROLLUP", f"{one}, {other} WITH CUBE", f"ROLLUP ({one}, {other})", f"CUBE ({one}, {other})",
                f"GROUPING SETS (({one}, {other}), ({one}), ())", f"{one}, {other} GROUPING SETS (({one}), ({other}))",
                f"{one}, ROLLUP ({other})", f"GROUPING SETS (({one}), ROLLUP ({other}))", f"{one}, GROUPING SETS (({other}), ())",
            )
        )  # fmt: skip
        extra = self._pick(("", f", grouping({one}) AS p", ", grouping_id() AS p"))
        return f"SELECT {one}, {other}{extra}, {', '.join(self._aggregates(most=2))} FROM m{self._where()} GROUP BY {by}"

    def joined(self) -> str:
        kind = self._pick(
            ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
        )
        on = self._pick(
            (
                "m.g = n.g", "m.k = n.k", "m.g <=> n.g", "m.i = n.i AND m.s <> n.s", "m.f = n.f", "m.l = n.i", "m.i < n.k AND m.g = n.g",
                "m.y = n.y", "m.d = n.i", "m.c = n.s",
            )
        )  # fmt: skip
        if kind in ("JOIN", "LEFT JOIN", "FULL JOIN") and self._chance(0.2):
            return f"SELECT g, m.k, n.i AS p, {self._any('m')} AS c FROM m {kind} n USING (g)"
        right = "" if "SEMI" in kind or "ANTI" in kind else ", n.k AS p, n.f AS q"
        return f"SELECT m.k{right}, {self._any('m')} AS c FROM m {kind} n ON {on}{self._where('m', 0.3)}"

    def grouped_join(self) -> str:
        kind = self._pick(("JOIN", "LEFT JOIN"))
        return f"SELECT n.g, {', '.join(self._aggregates('m'))} FROM m {kind} n ON m.i = n.i GROUP BY n.g"

    def lateral_view(self) -> str:
        outer = self._pick(("", "OUTER "))
        which = self._pick(
            ("explode(arr) x AS e", "posexplode(arr) x AS p, e", "explode(mp) x AS p, e", "explode(array(i, k, i)) x AS e", "inline(array(st, st)) x AS e, w")
        )  # fmt: skip
        if self._chance(0.4):
            return f"SELECT e, count(*) AS n, min(k) AS k FROM m LATERAL VIEW {outer}{which} GROUP BY e"
        return f"SELECT k, e, {self._any('m')} AS c FROM m LATERAL VIEW {outer}{which}"

    def lateral_join(self) -> str:
        return self._pick(
            (
                "SELECT m.k, x.e FROM m, LATERAL (SELECT m.i AS e) AS x", "SELECT m.k, x.e FROM m, LATERAL explode(m.arr) AS x(e)",
                "SELECT m.k, x.t FROM m LEFT JOIN LATERAL (SELECT sum(n.k) AS t FROM n WHERE n.g = m.g) AS x ON true",
            )
        )  # fmt: skip

    def windowed(self) -> str:
        part = self._pick(("PARTITION BY g", "PARTITION BY b", "PARTITION BY c, b", ""))
        order = self._pick(
            (
                "ORDER BY k",
                "ORDER BY k DESC",
                "ORDER BY i NULLS LAST, k",
                "ORDER BY f, k",
                "ORDER BY y DESC, k",
            )
        )
        call = self._pick(
            (
                "row_number()", "rank()", "dense_rank()", "lag(s)", "lead(i, 1, -1)", "first_value(s)", "last_value(f)", "count(*)", "max(d)",
                "sum(i % 7)", "ntile(2)", "percent_rank()", "cume_dist()", "nth_value(s, 2)", "min(y)", "first_value(s) IGNORE NULLS",
            )
        )  # fmt: skip
        window = f"{call} OVER ({part} {order})"
        if self._chance(0.35):
            return f"SELECT k, g, {self._any()} AS c FROM m QUALIFY row_number() OVER ({part} {order}) <= 2"
        return f"SELECT k, {self._any()} AS c, {window} AS w FROM m{self._where(share=0.3)}"

    def first_rows(self) -> str:
        items = [f"{self._any(comparable=True)} AS c{at}" for at in range(self.generator.randint(1, 3))]
        offset = self._pick(("", "", " OFFSET 1"))
        order = self._pick(("ORDER BY ALL", "ORDER BY ALL", "ORDER BY ALL DESC"))
        return f"SELECT {', '.join(items)} FROM m{self._where()} {order} LIMIT {self.generator.randint(1, 5)}{offset}"

    def set_operation(self) -> str:
        sides = self._pick(
            (
                "SELECT g, i FROM m {o} SELECT g, i FROM n", "SELECT i FROM m {o} SELECT l FROM n", "SELECT f FROM m {o} SELECT f FROM n",
                "SELECT d AS v FROM m {o} SELECT i FROM n", "SELECT s, y FROM m {o} SELECT s, y FROM n", "SELECT c FROM m {o} SELECT s FROM n",
                "SELECT r FROM m {o} SELECT f FROM n", "SELECT f AS v FROM m {o} SELECT l FROM n",
            )
        )  # fmt: skip
        operator = self._pick(
            ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")
        )
        return sides.format(o=operator)

    def pipes(self) -> str:
        return self._pick(
            (
                "FROM m |> WHERE i > 0 |> SELECT k, i + 1 AS p", "FROM m |> AGGREGATE count(*) AS n, max(s) AS p GROUP BY g",
                "FROM m |> EXTEND k % 2 AS p |> SELECT k, p |> WHERE p = 1", "FROM m |> SET i = 1 |> SELECT k, i |> DROP i",
                "FROM m |> JOIN n USING (g) |> SELECT m.k, n.f", "TABLE n |> SELECT g, f |> UNION ALL (SELECT g, f FROM m)",
            )
        )  # fmt: skip

    def pivoted(self) -> str:
        return self._pick(
            (
                "SELECT * FROM (SELECT g, b, i % 9 AS i FROM m) PIVOT (sum(i) AS t FOR b IN (true AS yes, false AS no))",
                "SELECT * FROM (SELECT s, g, f FROM m) PIVOT (max(f) FOR g IN ('a', 'b'))",
                "SELECT k, name, value FROM m UNPIVOT (value FOR name IN (g, s))",
                "SELECT k, name, value FROM m UNPIVOT INCLUDE NULLS (value FOR name IN (i, k AS kk))".replace(", k AS kk", ""),
            )
        )  # fmt: skip

    def common_table(self) -> str:
        return (
            f"WITH x AS (SELECT g, {self._of('int')} AS e, {self._of('double')} AS h FROM m{self._where()}), "
            "y AS (SELECT g, count(*) AS n, max(e) AS e, min(h) AS h FROM x GROUP BY g) "
            + self._pick(
                (
                    "SELECT x.g, x.e, y.n FROM x JOIN y ON x.g = y.g",
                    "SELECT * FROM y WHERE n > 1",
                    "SELECT e, h FROM x EXCEPT SELECT e, h FROM y",
                    "SELECT x.*, y.h AS yh FROM x LEFT JOIN y ON x.e = y.e",
                )
            )
        )

    def fails_at_times(self) -> str:
        """ANSI: these raise for some rows."""
        return self._pick(
            (
                "SELECT k, 10 / i AS p FROM m", "SELECT k, i + 1 AS p FROM m", "SELECT k, CAST(s AS INT) AS p FROM n", "SELECT g, sum(l) AS p FROM m GROUP BY g",
                "SELECT k, element_at(arr, 1) AS p FROM m", "SELECT k, date_add(y, 1) AS p FROM m", "SELECT k, -i AS p FROM m WHERE g = 'a'",
                "SELECT k, mp['zz'] AS p, arr[0] AS q FROM m", "SELECT k, (SELECT n.k FROM n WHERE n.g = m.g) AS p FROM m",
                "SELECT k, CAST(l AS INT) AS p FROM m", "SELECT k, 1 % i AS p FROM m", "SELECT k, l * 2 AS p FROM n",
            )
        )  # fmt: skip


_FORMS = (
    ("plain",) * 3 + ("distinct", "lateral_alias", "total", "pivoted", "lateral_join", "pipes") + ("value_subqueries",) * 2
    + ("grouped",) * 5 + ("grouping_sets",) * 3 + ("joined",) * 4 + ("grouped_join",) * 2 + ("lateral_view",) * 2
    + ("windowed",) * 3 + ("first_rows",) * 2 + ("set_operation",) * 2 + ("common_table",) * 2 + ("fails_at_times",) * 2
)  # fmt: skip

_EXPRESSIONS = {
    "int": (
        "@i", "@i", "@k", "@l", "size(@arr)", "@st.x", "try_element_at(@mp, 'a')", "length(@s)", "year(@y)", "bit_count(@i)", "pmod(@k, 3)",
        "aggregate(@arr, 0, (acc, x) -> acc + coalesce(x, 0))", "nullif(@i, 1)", "@k div 2", "get(@arr, 0)", "length(@c)", "CAST(@b AS INT)",
        "try_add(@i, 1)", "try_divide(@k, @i)", "greatest(@i, @k)", "array_position(@arr, 2)", "if(@b, @i, @k)", "datediff(@y, DATE'2024-01-01')",
        "try_cast(@s AS INT)", "month(@ts)", "hash(@s, @i)", "CASE @g WHEN 'a' THEN 1 WHEN NULL THEN 2 ELSE @i END",
    ),
    "double": (
        "@f", "@f", "@r", "nanvl(@f, 0.5D)", "@f / 2", "round(@f, 1)", "@k / 3", "CAST(@d AS DOUBLE)", "try_divide(@f, @i)", "abs(@f)", "least(@f, 1.0D)",
        "CAST(@r AS DOUBLE)", "signum(@f)",
    ),
    "decimal": ("@d", "@d", "@d * 2", "round(@d, 1)", "CAST(@k AS DECIMAL(12,3))", "@d / 3", "@d % 1", "abs(@d)", "floor(@d)", "@d + @k", "-@d"),
    "string": (
        "@g", "@s", "@c", "upper(@s)", "@s || @g", "concat_ws('-', @g, @s)", "trim(@s)", "substring(@s, 1, 1)", "date_format(@y, 'yyyy-MM')", "CAST(@i AS STRING)",
        "to_json(@st)", "array_join(transform(@arr, x -> CAST(x AS STRING)), ',', '?')", "reverse(@s)", "CAST(@f AS STRING)", "CAST(@ts AS STRING)", "initcap(@g)",
        "regexp_replace(@s, 'a', '-')", "@st.y", "lpad(@c, 4, '*')", "coalesce(@s, @g, '-')", "CAST(@d AS STRING)", "@c || '|'", "replace(@s, 'a')",
        "CASE WHEN @i > 0 THEN @s END", "CAST(@y AS STRING)", "CAST(@mp AS STRING)",
    ),
    "date": ("@y", "@y", "last_day(@y)", "trunc(@y, 'YEAR')", "CAST(@ts AS DATE)", "coalesce(@y, CAST(@ts AS DATE))", "try_to_date(@s)"),
    "time": ("@ts", "date_trunc('HOUR', @ts)", "CAST(@y AS TIMESTAMP)", "CAST(@ts AS TIMESTAMP_NTZ)"),
    "bool": (
        "@b", "@i > 1", "@s LIKE 'a%'", "@s RLIKE '^a'", "@i IN (1, 2, NULL)", "@g <=> 'a'", "array_contains(@arr, 1)", "exists(@arr, x -> x > 1)",
        "forall(@arr, x -> x > 0)", "@s ILIKE 'A%'", "isnan(@f)", "@f > 0", "@f = 0", "@y BETWEEN DATE'1500-01-01' AND DATE'2024-02-29'", "@d >= 1.5", "@c = 'a'",
        "@i IS NULL", "@f IS NOT NULL", "@s LIKE ANY ('a%', '%b')", "startswith(@s, 'a')", "map_contains_key(@mp, 'a')", "@i = @k", "@i IS DISTINCT FROM 1",
        "@st.x = 1", "@st IS NULL", "@g = @s COLLATE UTF8_BINARY", "size(@arr) > 1",
    ),
    "complex": (
        "@arr", "@mp", "@st", "named_struct('p', @i, 'q', @s)", "map_filter(@mp, (k, v) -> v > 1)", "transform(@arr, x -> x * 2)", "filter(@arr, x -> x > 1)",
        "array_sort(@arr)", "map_keys(@mp)", "array(@i, @k)", "split(@s, 'a')", "struct(@g, @d)", "map('k', @f)", "array_distinct(@arr)",
        "transform_values(@mp, (k, v) -> v + 1)", "zip_with(@arr, @arr, (x, y) -> x + y)", "array(@f, @f)", "map(@k, @st)",
    ),
}  # fmt: skip
_EXPRESSIONS["any"] = ("@i", "@g", "@s", "@y", "@d", "@f", "@b")
_EXPRESSIONS["ordered"] = ("@i", "@g", "@s", "@y", "@d", "@f", "@st", "@arr", "@ts", "@c", "@b", "@r")
_EXPRESSIONS["small"] = ("@i % 7", "pmod(@k, 3)", "length(@s)", "CAST(@b AS INT)")

_AGGREGATES = {
    "any": ("count({e})", "count(DISTINCT {e})", "count(*)", "count(DISTINCT {e}, g)".replace(", g", ""), "array_sort(collect_set({e}))", "approx_count_distinct({e})"),
    "small": (
        "sum({e})", "avg({e})", "sum(DISTINCT {e})", "stddev({e})", "var_pop({e})", "median({e})", "percentile({e}, 0.25)", "bit_xor({e})", "bit_or({e})", "try_sum({e})",
        "array_sort(collect_list({e}))", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {e})", "skewness({e})", "bit_and({e})", "count_if({e} > 1)",
    ),
    "double": ("sum({e})", "avg({e})", "max({e})", "min({e})", "stddev_pop({e})"),
    "decimal": ("sum({e})", "avg({e})", "max({e})", "sum(DISTINCT {e})"),
    "ordered": ("max({e})", "min({e})"),
    "bool": ("bool_and({e})", "bool_or({e})", "count_if({e})", "every({e})"),
    "string": ("max({e})", "min({e})", "listagg({e}, ',') WITHIN GROUP (ORDER BY {e})", "count(DISTINCT {e})"),
}  # fmt: skip
