-- WITH x AS (WITH x AS (SELECT id AS a FROM orders) SELECT a + 1 AS a FROM x) SELECT a FROM x
-- reads orders as orders
-- gives a

WITH `x` AS (
  WITH `x` AS (
    SELECT
      `orders`.`id` AS `a`
    FROM `orders` AS `orders`
  )
  SELECT
    `x`.`a` + 1 AS `a`
  FROM `x` AS `x`
)
SELECT
  `x`.`a` AS `a`
FROM `x` AS `x`
