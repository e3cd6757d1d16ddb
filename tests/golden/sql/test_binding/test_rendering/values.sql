-- SELECT x, id FROM VALUES (1, 2) AS v(x, y) JOIN orders ON id = y
-- reads orders as orders
-- gives x, id

SELECT
  `v`.`x` AS `x`,
  `orders`.`id` AS `id`
FROM VALUES
  (1, 2) AS `v`(`x`, `y`)
JOIN `orders` AS `orders`
  ON `orders`.`id` = `v`.`y`
