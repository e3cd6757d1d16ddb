-- Second of a chain of three: what was returned, by nation and segment.
-- Operators: group over a view
-- Strategy: differential
SELECT n_name, c_mktsegment, count(*) AS lines, sum(revenue) AS revenue
FROM chain_lines
GROUP BY n_name, c_mktsegment
