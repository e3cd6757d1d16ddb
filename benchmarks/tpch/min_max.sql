-- The range of prices of each part, and when it was last received.
-- Operators: group with min and max
-- Strategy: differential
SELECT l_partkey, min(l_extendedprice) AS least, max(l_extendedprice) AS most, max(l_receiptdate) AS last_day
FROM lineitem
GROUP BY l_partkey
