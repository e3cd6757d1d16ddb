-- Lines and quantity of each order priority: five groups.
-- Operators: join, group
-- Strategy: differential
SELECT o_orderpriority, count(*) AS lines, sum(l_quantity) AS quantity
FROM orders
JOIN lineitem ON l_orderkey = o_orderkey
GROUP BY o_orderpriority
