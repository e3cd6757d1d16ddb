-- Every order with its returned lines, if any.
-- Operators: left join with a condition on the right
-- Strategy: differential
SELECT o_orderkey, o_orderdate, o_custkey, l_linenumber, l_quantity, l_receiptdate
FROM orders
LEFT JOIN lineitem ON l_orderkey = o_orderkey AND l_returnflag = 'R'
