-- WITH x(a, b) AS (SELECT id, amount FROM orders) SELECT b, a FROM x
-- reads orders as orders
-- gives b, a

WITH `x` AS (
  SELECT
    `orders`.`id` AS `a`,
    `orders`.`amount` AS `b`
  FROM `orders` AS `orders`
)
SELECT
  `x`.`b` AS `b`,
  `x`.`a` AS `a`
FROM `x` AS `x`
