-- The ship modes that each customer was served by.
-- Operators: join, distinct
-- Strategy: differential
SELECT DISTINCT o_custkey, l_shipmode
FROM orders
JOIN lineitem ON l_orderkey = o_orderkey
