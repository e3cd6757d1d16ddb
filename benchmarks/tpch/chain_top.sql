-- Third of a chain of three: the ten groups that returned most.
-- Operators: limit over a view
-- Strategy: differential
SELECT n_name, c_mktsegment, revenue
FROM chain_revenue
ORDER BY revenue DESC, n_name, c_mktsegment
LIMIT 10
