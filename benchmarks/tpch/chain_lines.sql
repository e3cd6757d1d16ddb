-- First of a chain of three: returned lines with nation and segment of the customer.
-- Operators: join of four tables, filter
-- Strategy: differential_rules
SELECT l_orderkey, l_linenumber, n_name, c_mktsegment, l_extendedprice * (1 - l_discount) AS revenue
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN nation ON n_nationkey = c_nationkey
WHERE l_returnflag = 'R'
