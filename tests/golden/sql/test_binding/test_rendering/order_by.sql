-- SELECT id, amount * 2 AS dbl FROM orders ORDER BY dbl DESC, placed LIMIT 3
-- reads orders as orders
-- gives id, dbl

SELECT
  `orders`.`id` AS `id`,
  `orders`.`amount` * 2 AS `dbl`
FROM `orders` AS `orders`
ORDER BY
  `dbl` DESC,
  `orders`.`placed`
LIMIT 3
