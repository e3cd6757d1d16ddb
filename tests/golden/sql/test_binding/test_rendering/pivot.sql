-- SELECT * FROM (SELECT product, quantity FROM items) PIVOT (SUM(quantity) FOR product IN ('x', 'y'))
-- reads items as items
-- gives x, y

SELECT
  `_1`.`x` AS `x`,
  `_1`.`y` AS `y`
FROM (
  SELECT
    *
  FROM (
    SELECT
      `items`.`product` AS `product`,
      `items`.`quantity` AS `quantity`
    FROM `items` AS `items`
  ) AS `_0`
  PIVOT(SUM(`_0`.`quantity`) FOR `product` IN ('x', 'y'))
) AS `_1`
