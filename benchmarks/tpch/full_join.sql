-- Urgent orders beside lines shipped by air: either may be missing.
-- Operators: full join of derived tables
-- Strategy: differential
SELECT coalesce(o_orderkey, l_orderkey) AS orderkey, o_orderdate, o_totalprice, l_linenumber, l_quantity
FROM (SELECT o_orderkey, o_orderdate, o_totalprice FROM orders WHERE o_orderpriority = '1-URGENT') AS urgent
FULL JOIN (SELECT l_orderkey, l_linenumber, l_quantity FROM lineitem WHERE l_shipmode = 'AIR') AS by_air
  ON l_orderkey = o_orderkey
