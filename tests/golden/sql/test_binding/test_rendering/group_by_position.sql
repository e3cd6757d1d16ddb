-- SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY 1
-- reads orders as orders
-- gives customer_id, n

SELECT
  `orders`.`customer_id` AS `customer_id`,
  COUNT(*) AS `n`
FROM `orders` AS `orders`
GROUP BY
  `orders`.`customer_id`
