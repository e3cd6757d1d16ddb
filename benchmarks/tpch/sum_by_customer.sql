-- Revenue of every customer: one group each.
-- Operators: join of three tables, group
-- Strategy: differential
SELECT c_custkey, c_name, count(*) AS lines, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
GROUP BY c_custkey, c_name
