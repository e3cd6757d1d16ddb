-- Orders and returns in one list of events.
-- Operators: filter, union all
-- Strategy: differential
SELECT o_orderkey AS orderkey, CAST(NULL AS INT) AS linenumber, o_orderdate AS day, 'ordered' AS event
FROM orders
UNION ALL
SELECT l_orderkey, l_linenumber, l_receiptdate, 'returned'
FROM lineitem
WHERE l_returnflag = 'R'
