-- SELECT product, e.p FROM items, LATERAL EXPLODE(prices) AS e(p)
-- reads items as items
-- gives product, p

SELECT
  `items`.`product` AS `product`,
  `e`.`p` AS `p`
FROM `items` AS `items`
CROSS JOIN LATERAL EXPLODE(`items`.`prices`) AS `e`(`p`)
