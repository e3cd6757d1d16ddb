-- SELECT q.b FROM (SELECT id AS b FROM orders) AS q
-- reads orders as orders
-- gives b

SELECT
  `q`.`b` AS `b`
FROM (
  SELECT
    `orders`.`id` AS `b`
  FROM `orders` AS `orders`
) AS `q`
