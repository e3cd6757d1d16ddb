-- SELECT AGGREGATE(prices, 0, (acc, p) -> acc + p) AS s FROM items
-- reads items as items
-- gives s

SELECT
  AGGREGATE(`items`.`prices`, 0, (`acc`, `p`) -> `acc` + `p`) AS `s`
FROM `items` AS `items`
