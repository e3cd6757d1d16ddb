-- SELECT amount * 2 AS dbl, dbl + 1 AS more FROM orders
-- reads orders as orders
-- gives dbl, more

SELECT
  `orders`.`amount` * 2 AS `dbl`,
  `orders`.`amount` * 2 + 1 AS `more`
FROM `orders` AS `orders`
