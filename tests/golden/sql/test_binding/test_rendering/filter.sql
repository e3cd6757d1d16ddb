-- SELECT amount FROM orders WHERE amount > 10
-- reads orders as orders
-- gives amount

SELECT
  `orders`.`amount` AS `amount`
FROM `orders` AS `orders`
WHERE
  `orders`.`amount` > 10
