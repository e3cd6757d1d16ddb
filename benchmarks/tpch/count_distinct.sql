-- How many suppliers and ship modes each part came by.
-- Operators: group with two count distinct
-- Strategy: differential
SELECT l_partkey, count(DISTINCT l_suppkey) AS suppliers, count(DISTINCT l_shipmode) AS modes
FROM lineitem
GROUP BY l_partkey
