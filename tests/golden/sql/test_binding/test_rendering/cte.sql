-- WITH big AS (SELECT * FROM orders WHERE amount > 9) SELECT id FROM big
-- reads orders as orders
-- gives id

WITH `big` AS (
  SELECT
    `orders`.`id` AS `id`,
    `orders`.`customer_id` AS `customer_id`,
    `orders`.`amount` AS `amount`,
    `orders`.`placed` AS `placed`
  FROM `orders` AS `orders`
  WHERE
    `orders`.`amount` > 9
)
SELECT
  `big`.`id` AS `id`
FROM `big` AS `big`
