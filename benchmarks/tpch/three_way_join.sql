-- Every line with its order and customer.
-- Operators: join of three tables
-- Strategy: differential
SELECT l_orderkey, l_linenumber, o_orderdate, o_orderpriority, c_custkey, c_mktsegment, l_quantity, l_extendedprice
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
