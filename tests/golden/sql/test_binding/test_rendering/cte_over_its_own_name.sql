-- WITH orders AS (SELECT * FROM orders WHERE id > 1) SELECT * FROM orders
-- reads orders as orders2
-- gives id, customer_id, amount, placed

WITH `orders` AS (
  SELECT
    `orders`.`id` AS `id`,
    `orders`.`customer_id` AS `customer_id`,
    `orders`.`amount` AS `amount`,
    `orders`.`placed` AS `placed`
  FROM `orders2` AS `orders`
  WHERE
    `orders`.`id` > 1
)
SELECT
  `orders`.`id` AS `id`,
  `orders`.`customer_id` AS `customer_id`,
  `orders`.`amount` AS `amount`,
  `orders`.`placed` AS `placed`
FROM `orders` AS `orders`
