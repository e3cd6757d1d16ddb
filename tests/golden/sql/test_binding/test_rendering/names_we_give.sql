-- SELECT COUNT(*), COUNT(DISTINCT customer_id) AS c, SUM(amount) FROM orders
-- reads orders as orders
-- gives _col_0, c, _col_2

SELECT
  COUNT(*) AS `_col_0`,
  COUNT(DISTINCT `orders`.`customer_id`) AS `c`,
  SUM(`orders`.`amount`) AS `_col_2`
FROM `orders` AS `orders`
