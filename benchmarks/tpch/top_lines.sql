-- The hundred dearest lines.
-- Operators: limit
-- Strategy: differential
SELECT l_orderkey, l_linenumber, l_extendedprice
FROM lineitem
ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber
LIMIT 100
