-- SELECT s.p FROM (SELECT id, amount FROM orders) AS s(p, q)
-- reads orders as orders
-- gives p

SELECT
  `s`.`p` AS `p`
FROM (
  SELECT
    `orders`.`id` AS `p`,
    `orders`.`amount` AS `q`
  FROM `orders` AS `orders`
) AS `s`
