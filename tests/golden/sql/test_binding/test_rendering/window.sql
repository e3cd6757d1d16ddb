-- SELECT id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed DESC) AS n FROM orders
-- reads orders as orders
-- gives id, n

SELECT
  `orders`.`id` AS `id`,
  ROW_NUMBER() OVER (PARTITION BY `orders`.`customer_id` ORDER BY `orders`.`placed` DESC) AS `n`
FROM `orders` AS `orders`
