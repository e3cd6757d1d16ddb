-- WITH RECURSIVE r AS (SELECT id, 1 AS n FROM orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r
-- reads orders as orders
-- gives id, n

WITH RECURSIVE `r` AS (
  SELECT
    `orders`.`id` AS `id`,
    1 AS `n`
  FROM `orders` AS `orders`
  UNION ALL
  SELECT
    `r`.`id` AS `id`,
    `r`.`n` + 1 AS `_col_1`
  FROM `r` AS `r`
  WHERE
    `r`.`n` < 3
)
SELECT
  `r`.`id` AS `id`,
  `r`.`n` AS `n`
FROM `r` AS `r`
