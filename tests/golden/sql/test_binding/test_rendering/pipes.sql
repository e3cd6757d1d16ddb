-- FROM orders |> WHERE amount > 1 |> SELECT id
-- reads orders as orders
-- gives id

WITH `__tmp1` AS (
  SELECT
    `orders`.`id` AS `id`
  FROM `orders` AS `orders`
  WHERE
    `orders`.`amount` > 1
)
SELECT
  `__tmp1`.`id` AS `id`
FROM `__tmp1` AS `__tmp1`
