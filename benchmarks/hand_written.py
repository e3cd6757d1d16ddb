"""The views of `benchmarks.views` as an expert would keep them by hand: change feed, SQL, MERGE, plain Delta tables.

Each job is written for its view and for what is known of these tables: orders come and go with all their lines and
are never updated, customers and nations do not change, and a job runs after every batch, so that a key occurs once
in a feed. Base tables, and `lines_feed` and `orders_feed` (the feeds since the last run, with a sign), are temporary
views; a view's own table is written `{name}`. What MERGE cannot say is two statements, which readers see in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_TOUCHED_ORDERS = "(SELECT l_orderkey AS orderkey FROM lines_feed UNION SELECT o_orderkey FROM orders_feed)"
_ORDERS_SEEN = """(
    SELECT o_orderkey, o_custkey, o_orderpriority FROM orders
    UNION ALL SELECT o_orderkey, o_custkey, o_orderpriority FROM orders_feed WHERE _change_type = 'delete')"""
"""Lines that are gone need their orders, which may be gone too."""

_STATEMENTS: Mapping[str, tuple[str, ...]] = {
    "three_way_join": (
        """MERGE INTO {three_way_join} AS t USING (
            SELECT f.l_orderkey, f.l_linenumber, o_orderdate, o_orderpriority, c_custkey, c_mktsegment, f.l_quantity,
              f.l_extendedprice, f._change_type
            FROM lines_feed f LEFT JOIN orders ON o_orderkey = f.l_orderkey LEFT JOIN customer ON c_custkey = o_custkey
            WHERE f._change_type <> 'update_preimage') AS s
          ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber
          WHEN MATCHED AND s._change_type = 'delete' THEN DELETE
          WHEN MATCHED THEN UPDATE SET l_quantity = s.l_quantity, l_extendedprice = s.l_extendedprice
          WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT
            (l_orderkey, l_linenumber, o_orderdate, o_orderpriority, c_custkey, c_mktsegment, l_quantity, l_extendedprice)
            VALUES (s.l_orderkey, s.l_linenumber, s.o_orderdate, s.o_orderpriority, s.c_custkey, s.c_mktsegment,
              s.l_quantity, s.l_extendedprice)""",
    ),
    "sum_by_customer": (
        f"""MERGE INTO {{sum_by_customer}} AS t USING (
            SELECT c_custkey, c_name, sum(sign) AS lines,
              sum(IF(sign > 0, 1, -1) * l_extendedprice * (1 - l_discount)) AS revenue
            FROM lines_feed JOIN {_ORDERS_SEEN} ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey
            GROUP BY c_custkey, c_name) AS s
          ON t.c_custkey = s.c_custkey
          WHEN MATCHED AND t.lines + s.lines = 0 THEN DELETE
          WHEN MATCHED THEN UPDATE SET lines = t.lines + s.lines, revenue = t.revenue + s.revenue
          WHEN NOT MATCHED THEN INSERT *""",
    ),
    "sum_by_priority": (
        f"""MERGE INTO {{sum_by_priority}} AS t USING (
            SELECT o_orderpriority, sum(sign) AS lines, sum(sign * l_quantity) AS quantity
            FROM lines_feed JOIN {_ORDERS_SEEN} ON o_orderkey = l_orderkey
            GROUP BY o_orderpriority) AS s
          ON t.o_orderpriority = s.o_orderpriority
          WHEN MATCHED AND t.lines + s.lines = 0 THEN DELETE
          WHEN MATCHED THEN UPDATE SET lines = t.lines + s.lines, quantity = t.quantity + s.quantity
          WHEN NOT MATCHED THEN INSERT *""",
    ),
    "left_join": (
        f"""MERGE INTO {{left_join}} AS t USING {_TOUCHED_ORDERS} AS s ON t.o_orderkey = s.orderkey
          WHEN MATCHED THEN DELETE""",
        f"""INSERT INTO {{left_join}}
          SELECT /*+ BROADCAST(s) */ o_orderkey, o_orderdate, o_custkey, l_linenumber, l_quantity, l_receiptdate
          FROM (SELECT o.* FROM orders o JOIN {_TOUCHED_ORDERS} AS s ON o.o_orderkey = s.orderkey) AS touched
          LEFT JOIN (SELECT /*+ BROADCAST(s) */ l.* FROM lineitem l JOIN {_TOUCHED_ORDERS} AS s ON l_orderkey = s.orderkey)
            ON l_orderkey = o_orderkey AND l_returnflag = 'R'""",
    ),
    "full_join": (
        f"""MERGE INTO {{full_join}} AS t USING {_TOUCHED_ORDERS} AS s ON t.orderkey = s.orderkey
          WHEN MATCHED THEN DELETE""",
        f"""INSERT INTO {{full_join}}
          SELECT coalesce(o_orderkey, l_orderkey), o_orderdate, o_totalprice, l_linenumber, l_quantity
          FROM (SELECT /*+ BROADCAST(s) */ o.* FROM orders o JOIN {_TOUCHED_ORDERS} AS s ON o_orderkey = s.orderkey
            WHERE o_orderpriority = '1-URGENT')
          FULL JOIN (SELECT /*+ BROADCAST(s) */ l.* FROM lineitem l JOIN {_TOUCHED_ORDERS} AS s ON l_orderkey = s.orderkey
            WHERE l_shipmode = 'AIR')
            ON l_orderkey = o_orderkey""",
    ),
    "not_exists": (
        f"""MERGE INTO {{not_exists}} AS t USING (
            WITH late AS (
              SELECT /*+ BROADCAST(s) */ DISTINCT l_orderkey FROM lineitem JOIN {_TOUCHED_ORDERS} AS s ON l_orderkey = orderkey
              WHERE l_receiptdate > l_commitdate)
            SELECT /*+ BROADCAST(s) */ orderkey, o_orderkey, o_custkey, o_orderdate, o_totalprice, l_orderkey
            FROM {_TOUCHED_ORDERS} AS s LEFT JOIN orders ON o_orderkey = orderkey LEFT JOIN late ON l_orderkey = orderkey) AS s
          ON t.o_orderkey = s.orderkey
          WHEN MATCHED AND (s.o_orderkey IS NULL OR s.l_orderkey IS NOT NULL) THEN DELETE
          WHEN NOT MATCHED AND s.o_orderkey IS NOT NULL AND s.l_orderkey IS NULL THEN INSERT
            (o_orderkey, o_custkey, o_orderdate, o_totalprice)
            VALUES (s.o_orderkey, s.o_custkey, s.o_orderdate, s.o_totalprice)""",
    ),
    "distinct_pairs": (
        f"""MERGE INTO {{distinct_pairs}} AS t USING (
            WITH touched AS (
              SELECT DISTINCT o_custkey, l_shipmode FROM lines_feed JOIN {_ORDERS_SEEN} ON o_orderkey = l_orderkey),
            present AS (
              SELECT DISTINCT o_custkey, l_shipmode
              FROM (SELECT o_orderkey, o_custkey FROM orders LEFT SEMI JOIN touched USING (o_custkey))
              JOIN lineitem ON l_orderkey = o_orderkey)
            SELECT touched.*, present.o_custkey IS NOT NULL AS is_there
            FROM touched LEFT JOIN present USING (o_custkey, l_shipmode)) AS s
          ON t.o_custkey = s.o_custkey AND t.l_shipmode = s.l_shipmode
          WHEN MATCHED AND NOT s.is_there THEN DELETE
          WHEN NOT MATCHED AND s.is_there THEN INSERT (o_custkey, l_shipmode) VALUES (s.o_custkey, s.l_shipmode)""",
    ),
    "union_all": (
        """MERGE INTO {union_all} AS t USING (
            SELECT o_orderkey AS orderkey, CAST(NULL AS INT) AS linenumber, o_orderdate AS day, 'ordered' AS event,
              _change_type <> 'delete' AS is_there
            FROM orders_feed
            UNION ALL
            SELECT l_orderkey, l_linenumber, l_receiptdate, 'returned', _change_type <> 'delete' AND l_returnflag = 'R'
            FROM lines_feed WHERE _change_type <> 'update_preimage') AS s
          ON t.orderkey = s.orderkey AND t.linenumber <=> s.linenumber
          WHEN MATCHED AND NOT s.is_there THEN DELETE
          WHEN MATCHED THEN UPDATE SET day = s.day
          WHEN NOT MATCHED AND s.is_there THEN INSERT (orderkey, linenumber, day, event)
            VALUES (s.orderkey, s.linenumber, s.day, s.event)""",
    ),
    "count_distinct": (
        """MERGE INTO {count_distinct} AS t USING (
            WITH touched AS (SELECT DISTINCT l_partkey AS part FROM lines_feed)
            SELECT part, suppliers, modes FROM touched LEFT JOIN (
              SELECT /*+ BROADCAST(touched) */ l_partkey, count(DISTINCT l_suppkey) AS suppliers,
                count(DISTINCT l_shipmode) AS modes
              FROM lineitem LEFT SEMI JOIN touched ON l_partkey = part GROUP BY l_partkey) ON l_partkey = part) AS s
          ON t.l_partkey = s.part
          WHEN MATCHED AND s.suppliers IS NULL THEN DELETE
          WHEN MATCHED THEN UPDATE SET suppliers = s.suppliers, modes = s.modes
          WHEN NOT MATCHED AND s.suppliers IS NOT NULL THEN INSERT (l_partkey, suppliers, modes)
            VALUES (s.part, s.suppliers, s.modes)""",
    ),
    "min_max": (
        """MERGE INTO {min_max} AS t USING (
            WITH touched AS (SELECT DISTINCT l_partkey AS part FROM lines_feed)
            SELECT part, least, most, last_day FROM touched LEFT JOIN (
              SELECT /*+ BROADCAST(touched) */ l_partkey, min(l_extendedprice) AS least, max(l_extendedprice) AS most,
                max(l_receiptdate) AS last_day
              FROM lineitem LEFT SEMI JOIN touched ON l_partkey = part GROUP BY l_partkey) ON l_partkey = part) AS s
          ON t.l_partkey = s.part
          WHEN MATCHED AND s.least IS NULL THEN DELETE
          WHEN MATCHED THEN UPDATE SET least = s.least, most = s.most, last_day = s.last_day
          WHEN NOT MATCHED AND s.least IS NOT NULL THEN INSERT (l_partkey, least, most, last_day)
            VALUES (s.part, s.least, s.most, s.last_day)""",
    ),
    "chain_top": (
        """MERGE INTO {chain_lines} AS t USING (
            SELECT f.l_orderkey, f.l_linenumber, n_name, c_mktsegment,
              f.l_extendedprice * (1 - f.l_discount) AS revenue,
              f._change_type <> 'delete' AND f.l_returnflag = 'R' AS is_there
            FROM lines_feed f LEFT JOIN orders ON o_orderkey = f.l_orderkey LEFT JOIN customer ON c_custkey = o_custkey
            LEFT JOIN nation ON n_nationkey = c_nationkey
            WHERE f._change_type <> 'update_preimage') AS s
          ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber
          WHEN MATCHED AND NOT s.is_there THEN DELETE
          WHEN MATCHED THEN UPDATE SET revenue = s.revenue
          WHEN NOT MATCHED AND s.is_there THEN INSERT (l_orderkey, l_linenumber, n_name, c_mktsegment, revenue)
            VALUES (s.l_orderkey, s.l_linenumber, s.n_name, s.c_mktsegment, s.revenue)""",
        f"""MERGE INTO {{chain_revenue}} AS t USING (
            SELECT n_name, c_mktsegment, sum(sign) AS lines,
              sum(IF(sign > 0, 1, -1) * l_extendedprice * (1 - l_discount)) AS revenue
            FROM lines_feed JOIN {_ORDERS_SEEN} ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey
            JOIN nation ON n_nationkey = c_nationkey
            WHERE l_returnflag = 'R'
            GROUP BY n_name, c_mktsegment) AS s
          ON t.n_name = s.n_name AND t.c_mktsegment = s.c_mktsegment
          WHEN MATCHED AND t.lines + s.lines = 0 THEN DELETE
          WHEN MATCHED THEN UPDATE SET lines = t.lines + s.lines, revenue = t.revenue + s.revenue
          WHEN NOT MATCHED THEN INSERT *""",
        """INSERT OVERWRITE {chain_top}
          SELECT n_name, c_mktsegment, revenue FROM {chain_revenue}
          ORDER BY revenue DESC, n_name, c_mktsegment LIMIT 10""",
    ),
}


def _keep_top_lines(spark: Any, tables: Mapping[str, str]) -> None:
    """New lines compete with the kept ones; only when a kept one is touched are all lines read."""
    top = tables["top_lines"]
    lost = spark.sql(
        f"SELECT 1 FROM {top} JOIN lines_feed USING (l_orderkey, l_linenumber) LIMIT 1"
    ).collect()
    columns = "l_orderkey, l_linenumber, l_extendedprice"
    newest = f"SELECT {columns} FROM lines_feed WHERE sign > 0"
    rivals = f"SELECT {columns} FROM lineitem" if lost else f"SELECT {columns} FROM {top} UNION ALL {newest}"
    spark.sql(
        f"INSERT OVERWRITE {top} SELECT {columns} FROM ({rivals}) "
        "ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 100"
    )


def hand_written_job(view: str) -> Callable[[Any, Mapping[str, str]], None]:
    """What brings the view's own tables (by name, as Spark SQL) up to date."""
    if view == "top_lines":
        return _keep_top_lines

    def run(spark: Any, tables: Mapping[str, str]) -> None:
        for statement in _STATEMENTS[view]:
            spark.sql(statement.format(**tables))

    return run
