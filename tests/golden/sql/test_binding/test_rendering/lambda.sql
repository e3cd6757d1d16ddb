-- SELECT TRANSFORM(tags, t -> CONCAT(t, name)) AS x FROM customers
-- reads customers as customers
-- gives x

SELECT
  TRANSFORM(`customers`.`tags`, `t` -> CONCAT(t, `customers`.`name`)) AS `x`
FROM `customers` AS `customers`
