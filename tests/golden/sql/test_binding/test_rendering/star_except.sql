-- SELECT * EXCEPT (placed) FROM orders
-- reads orders as orders
-- gives id, customer_id, amount

SELECT
  `orders`.`id` AS `id`,
  `orders`.`customer_id` AS `customer_id`,
  `orders`.`amount` AS `amount`
FROM `orders` AS `orders`
