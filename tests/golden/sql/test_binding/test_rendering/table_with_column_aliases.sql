-- SELECT p FROM items AS x(o, p, q, r)
-- reads items as items
-- gives p

SELECT
  `x`.`p` AS `p`
FROM `items` AS `x`(`o`, `p`, `q`, `r`)
