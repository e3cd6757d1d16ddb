-- SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id HAVING total > 100
-- reads orders as orders
-- gives customer_id, total

SELECT
  `orders`.`customer_id` AS `customer_id`,
  SUM(`orders`.`amount`) AS `total`
FROM `orders` AS `orders`
GROUP BY
  `orders`.`customer_id`
HAVING
  SUM(`orders`.`amount`) > 100
