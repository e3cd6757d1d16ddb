-- SELECT product, price FROM items LATERAL VIEW EXPLODE(prices) e AS price
-- reads items as items
-- gives product, price

SELECT
  `items`.`product` AS `product`,
  `e`.`price` AS `price`
FROM `items` AS `items`
LATERAL VIEW
EXPLODE(`items`.`prices`) e AS `price`
