-- SELECT customer_id AS c, SUM(amount) AS total FROM orders GROUP BY c
-- reads orders as orders
-- gives c, total

SELECT
  `orders`.`customer_id` AS `c`,
  SUM(`orders`.`amount`) AS `total`
FROM `orders` AS `orders`
GROUP BY
  `orders`.`customer_id`
