"""Changes of a loaded TPC-H warehouse, made from the data itself: the same statements for the same number.

Orders are chosen by their place in the data, evenly scattered over all of it or over the newest hundredth. New orders are copies under keys that were never
used, with all their lines (RF1 of TPC-H); orders are deleted with all their lines (RF2). Every foreign key holds
after a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.tpch.data import Data

_KINDS = ("insert", "delete", "update")
_LINES_OF_AN_ORDER = 4
"""On average."""

_UPDATE_OF_LINES = """
WHEN MATCHED AND new.kind = 'update' THEN UPDATE SET
  l_quantity = old.l_quantity * 7 % 50 + 1,
  l_extendedprice = CAST(old.l_extendedprice * 1.01 AS DECIMAL(15,2)),
  l_receiptdate = date_add(old.l_commitdate, CAST(old.l_partkey % 15 AS INT) - 7),
  l_returnflag = IF(old.l_returnflag = 'R', 'A', 'R'),
  l_shipmode = CASE old.l_shipmode WHEN 'AIR' THEN 'RAIL' WHEN 'RAIL' THEN 'SHIP' ELSE 'AIR' END"""


@dataclass(frozen=True)
class OrderChanges:
    """One batch for orders and lineitem. Batches of one warehouse differ in their `number`, from 1 on.

    An updated line gets another quantity, price, receipt date, return flag and ship mode.
    """

    data: Data
    number: int
    new_orders: int = 0
    deleted_orders: int = 0
    updated_lines: int = 0
    only_newest: bool = False

    @staticmethod
    def of_lines(data: Data, number: int, lines: int, only_newest: bool = False) -> OrderChanges:
        """About so many lines: half of them updated, a quarter deleted, a quarter new."""
        orders = lines // 4 // _LINES_OF_AN_ORDER
        return OrderChanges(data, number, orders, orders, max(1, lines // 2), only_newest)

    def statements(self) -> list[str]:
        """One MERGE for each table that changes."""
        lines = self._merge("lineitem", ("l_orderkey", "l_linenumber"), _UPDATE_OF_LINES)
        if not self.new_orders and not self.deleted_orders:
            return [lines]
        return [self._merge("orders", ("o_orderkey",)), lines]

    def _merge(self, table: str, key: tuple[str, ...], update: str = "") -> str:
        order_key, columns = key[0], self.data.columns(table)
        values = [self._value(column, order_key) for column in columns]
        return f"""MERGE INTO {table} AS old USING (
  SELECT kind, {", ".join(values)}
  FROM (SELECT *, {self._kind(order_key)} AS kind FROM {self.data.relation(table)}) AS chosen
  WHERE {"kind IS NOT NULL" if update else "kind <> 'update'"}) AS new
ON {" AND ".join(f"old.{column} = new.{column}" for column in key)}
WHEN MATCHED AND new.kind = 'delete' THEN DELETE{update}
WHEN NOT MATCHED AND new.kind = 'insert' THEN INSERT ({", ".join(columns)})
  VALUES ({", ".join(f"new.{column}" for column in columns)})"""

    def _value(self, column: str, order_key: str) -> str:
        if column == order_key:
            # TPC-H uses up to four times as many keys as there are orders.
            shift = self.number * (4 * self.data.rows("orders") + 32)
            return f"{column} + IF(kind = 'insert', {shift}, 0) AS {column}"
        if column == "o_custkey":
            # Every third customer of TPC-H has no order: one new order in ten is the first of one of them.
            first = f"greatest(3, {column} DIV 3 * 3)"
            return f"IF(kind = 'insert' AND {column} % 10 = 1, {first}, {column}) AS {column}"
        return column

    def _kind(self, order_key: str) -> str:
        """What becomes of an order, NULL for most: thirds of the data serve insertions, deletions and updates.

        The n-th order has the key `n DIV 8 * 32 + n % 8`.
        """
        place = f"({order_key} DIV 32 * 8 + {order_key} % 8 - 1)"
        most = self.data.rows("orders") // len(_KINDS)
        cases = []
        for third, (kind, count) in enumerate(
            zip(_KINDS, (self.new_orders, self.deleted_orders, self.updated_lines), strict=True)
        ):
            if count > most:
                raise ValueError(f"{count} orders to {kind}; this data has {most} for it.")
            if count:
                among = max(most // 100, count) if self.only_newest else most
                step = among // count
                within = f"({place} DIV {len(_KINDS)} - {most - among})"
                only_first = " AND l_linenumber = 1" if kind == "update" and order_key == "l_orderkey" else ""
                cases.append(
                    f"WHEN {place} % {len(_KINDS)} = {third} AND {within} BETWEEN 0 AND {step * count - 1} "
                    f"AND {within} % {step} = {self.number * 7919 % step}{only_first} THEN '{kind}'"
                )
        return f"CASE {' '.join(cases)} END"


def dimension_updates(number: int) -> list[str]:
    """Segments of customers, prices and kinds of parts, costs, nations of suppliers, names of nations."""
    return [
        "UPDATE customer SET c_mktsegment = IF(c_mktsegment = 'BUILDING', 'MACHINERY', 'BUILDING'), "
        f"c_acctbal = c_acctbal + 500 WHERE c_custkey % 20 = {number % 20}",
        "UPDATE part SET p_retailprice = p_retailprice + 1, p_size = p_size % 50 + 1, "
        "p_type = IF(p_mfgr = 'Manufacturer#1', 'ECONOMY ANODIZED STEEL', p_type), "
        "p_container = IF(p_brand = 'Brand#23', 'MED BOX', p_container) "
        f"WHERE p_partkey % 20 = {number % 20}",
        "UPDATE partsupp SET ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty + 100 "
        f"WHERE (ps_partkey + ps_suppkey) % 20 = {number % 20}",
        "UPDATE supplier SET s_nationkey = (s_nationkey + 1) % 25, s_acctbal = s_acctbal + 100 "
        f"WHERE s_suppkey % 10 = {number % 10}",
        "UPDATE nation SET n_name = CASE n_name WHEN 'GERMANY' THEN 'CANADA' WHEN 'CANADA' THEN 'SAUDI ARABIA' "
        "WHEN 'SAUDI ARABIA' THEN 'BRAZIL' ELSE 'GERMANY' END "
        "WHERE n_name IN ('GERMANY', 'CANADA', 'SAUDI ARABIA', 'BRAZIL')",
    ]


def large_orders(number: int) -> str:
    """All lines of some orders at once: quantities that only large orders have, and other dates."""
    return (
        "UPDATE lineitem SET l_quantity = 50, l_shipdate = date_add(l_shipdate, 40), "
        f"l_receiptdate = date_add(l_receiptdate, 40) WHERE l_orderkey % 211 = {number}"
    )
