-- SELECT CAST(amount AS STRING) AS s, placed + INTERVAL 1 DAY AS d FROM orders
-- reads orders as orders
-- gives s, d

SELECT
  CAST(`orders`.`amount` AS STRING) AS `s`,
  `orders`.`placed` + INTERVAL 1 DAY AS `d`
FROM `orders` AS `orders`
