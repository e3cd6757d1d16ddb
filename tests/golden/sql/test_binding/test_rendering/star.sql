-- SELECT * FROM orders
-- reads orders as orders
-- gives id, customer_id, amount, placed

SELECT
  `orders`.`id` AS `id`,
  `orders`.`customer_id` AS `customer_id`,
  `orders`.`amount` AS `amount`,
  `orders`.`placed` AS `placed`
FROM `orders` AS `orders`
