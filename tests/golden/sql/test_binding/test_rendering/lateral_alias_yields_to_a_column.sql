-- SELECT id + 1 AS amount, amount * 2 AS c FROM orders
-- reads orders as orders
-- gives amount, c

SELECT
  `orders`.`id` + 1 AS `amount`,
  `orders`.`amount` * 2 AS `c`
FROM `orders` AS `orders`
