-- SELECT customer_id % 2 AS customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id
-- reads orders as orders
-- gives customer_id, n

SELECT
  `orders`.`customer_id` % 2 AS `customer_id`,
  COUNT(*) AS `n`
FROM `orders` AS `orders`
GROUP BY
  `orders`.`customer_id`
