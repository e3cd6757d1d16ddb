-- Orders without a late line.
-- Operators: not exists
-- Strategy: differential
SELECT o_orderkey, o_custkey, o_orderdate, o_totalprice
FROM orders
WHERE NOT EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_receiptdate > l_commitdate)
