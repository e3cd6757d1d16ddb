-- SELECT placed, SUM(amount) FROM orders GROUP BY placed WITH ROLLUP
-- reads orders as orders
-- gives placed, _col_1

SELECT
  `orders`.`placed` AS `placed`,
  SUM(`orders`.`amount`) AS `_col_1`
FROM `orders` AS `orders`
GROUP BY
  `orders`.`placed`
  WITH ROLLUP
