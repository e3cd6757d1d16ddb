"""Aggregates that SQL leaves open, on Spark: maintained by changes, always one answer, and always one that SQL allows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.published import published, rows
from tests.support.spark_oracle import wrong_views
from viewkeeper import Warehouse

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, k STRING, x INT, s STRING, y INT, d DOUBLE, m MAP<STRING, INT>);
INSERT INTO t VALUES
  (1, 'a', 3, 'p', 1, 0.5, map('a', 1)), (2, 'a', 3, 'q', 2, -0.0, map()), (3, 'a', 1, 'r', 2, 0.0, NULL),
  (4, 'b', NULL, NULL, NULL, NULL, NULL), (5, 'b', NULL, 's', NULL, double('NaN'), NULL), (6, NULL, 7, 's', 1, 1.0, NULL);
CREATE MATERIALIZED VIEW alone REFRESH STRICT AS SELECT k, first(x) AS f FROM t GROUP BY k;
CREATE MATERIALIZED VIEW row_wise REFRESH STRICT AS SELECT k, first(x) AS f, last(s) AS l, any_value(d) IGNORE NULLS AS a,
  last(x, true) FILTER (WHERE y > 1) AS g FROM t GROUP BY k;
CREATE MATERIALIZED VIEW latest REFRESH STRICT AS
  SELECT k, max_by(x, y) AS x, max_by(s, y) AS s, min_by(id, y) FILTER (WHERE x > 1) AS i FROM t GROUP BY k;
CREATE MATERIALIZED VIEW lists REFRESH STRICT AS
  SELECT k, collect_list(x) AS xs, array_agg(s) AS ss FROM t WHERE x IS NOT NULL AND s IS NOT NULL GROUP BY k;
CREATE MATERIALIZED VIEW values_of REFRESH STRICT AS SELECT k, collect_list(DISTINCT s) AS ss, listagg(s, ',') AS s,
  string_agg(DISTINCT s, '-') AS d, mode(x) AS m, collect_set(d) AS ds, mode(d, false) AS e,
  listagg(CAST(x AS STRING), ',') WITHIN GROUP (ORDER BY y DESC) AS o, mode() WITHIN GROUP (ORDER BY s DESC) AS n
  FROM t GROUP BY k;
CREATE MATERIALIZED VIEW per_row REFRESH STRICT AS
  SELECT o.id, (SELECT collect_list(i.x) FROM t i WHERE i.y = o.x) AS xs, (SELECT first(i.s) FROM t i WHERE i.y = o.x) AS s FROM t o
"""
CHANGES = (
    "INSERT INTO t VALUES (7, 'b', 2, 'q', 2, 3.0, NULL), (8, 'a', 0, 'z', 2, NULL, NULL), (9, 'c', 1, 'p', 1, 1.0, NULL)",
    "DELETE FROM t WHERE id IN (3, 8); UPDATE t SET y = 2, x = x + 1 WHERE k = 'a' OR k IS NULL",
    "UPDATE t SET k = 'b' WHERE id = 1; DELETE FROM t WHERE id = 9",
    "UPDATE t SET s = NULL, x = NULL WHERE k = 'a'",
    "DELETE FROM t",
    "INSERT INTO t (id, k, x, s, y) VALUES (1, 'a', 1, 'p', 1), (2, 'a', 1, 'q', 1), (3, 'a', 2, 'p', 1)",
)


def test_they_follow_every_change_and_stay_answers_of_sql(warehouse: Warehouse, spark: Any) -> None:
    warehouse.run_script(TABLES)
    check_answers(warehouse)
    for change in CHANGES:
        warehouse.run_script(change)
        report = warehouse.refresh()
        assert {view.strategy for view in report.views} <= {"differential", "none"}, change
        wrong = wrong_views(warehouse, spark)
        assert not wrong, "\n".join([change, *wrong.values()])
        check_answers(warehouse)
    for name in warehouse.view_names():
        assert warehouse.verify(name).equal, name


def check_answers(warehouse: Warehouse) -> None:
    """What Spark might have answered, had the rows come in some order."""
    shown = {record.name.name: rows(table) for record, table in published(warehouse)}
    groups: dict[Any, list[Any]] = {}
    for id, k, x, s, y, d, _ in shown["t"]:
        groups.setdefault(k, []).append((k, id, x, s, y, d))

    def of_groups(name: str) -> list[Any]:
        assert len(shown[name]) == len({row[0] for row in shown[name]})
        return [(row, groups[row[0]]) for row in shown[name]]

    for (_, first), group in of_groups("alone"):
        assert first in {row[2] for row in group}
    for (_, first, last, *_), group in of_groups("row_wise"):
        assert first in {row[2] for row in group} and last in {row[3] for row in group}
    for (_, x, s, _), group in of_groups("latest"):
        known = [row for row in group if row[4] is not None]
        most = max((row[4] for row in known), default=None)
        assert (x, s) in ({(row[2], row[3]) for row in known if row[4] == most} or {(None, None)})
    for (_, xs, ss), group in of_groups("lists"):
        pairs = [(row[2], row[3]) for row in group if row[2] is not None and row[3] is not None]
        assert Counter(zip(xs, ss, strict=True)) == Counter(pairs)
    for (_, ss, text, distinct, mode, *_), group in of_groups("values_of"):
        values = sorted(row[3] for row in group if row[3] is not None)
        assert sorted(ss) == sorted(set(values))
        assert (text or "").split(",") == (values or [""])
        assert (distinct or "").split("-") == (sorted(set(values)) or [""])
        counted = Counter(row[2] for row in group if row[2] is not None)
        assert mode == min((each for each in counted if counted[each] == max(counted.values())), default=None)
    for _, xs, _ in shown["per_row"]:
        assert xs is not None


def test_what_has_no_order_is_recomputed(warehouse: Warehouse) -> None:
    warehouse.run_script(TABLES.partition(";")[0])
    warehouse.sql("CREATE MATERIALIZED VIEW maps AS SELECT k, any_value(m) AS m FROM t GROUP BY k")
    warehouse.sql("INSERT INTO t (id, k, m) VALUES (1, 'a', map('a', 1))")
    (report,) = warehouse.refresh().views
    assert report.strategy == "recompute"
    assert "m is a MAP<STRING, INT>, which has no order to break ties by" in report.reason


def test_distinct_numbers_as_texts(warehouse: Warehouse) -> None:
    """Spark takes no other order of distinct values than by themselves, and numbers are cast before they are put together."""
    warehouse.run_script(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT); INSERT INTO t VALUES (1, 1, 10), (2, 1, 9), (3, 1, 9);"
        "CREATE MATERIALIZED VIEW v AS SELECT k, listagg(DISTINCT x, ',') AS xs FROM t GROUP BY k"
    )
    warehouse.sql("INSERT INTO t VALUES (4, 1, 8)")
    warehouse.refresh()
    assert warehouse.verify("v").equal
    assert warehouse.sql("SELECT xs FROM v").collect()[0][0] == "8,9,10"
