-- SELECT id, SUM(amount) OVER w AS s FROM orders WINDOW w AS (PARTITION BY customer_id)
-- reads orders as orders
-- gives id, s

SELECT
  `orders`.`id` AS `id`,
  SUM(`orders`.`amount`) OVER `w` AS `s`
FROM `orders` AS `orders`
WINDOW `w` AS (PARTITION BY `orders`.`customer_id`)
