-- SELECT TRANSFORM(tags, (name, i) -> name) AS x FROM customers
-- reads customers as customers
-- gives x

SELECT
  TRANSFORM(`customers`.`tags`, (`name`, `i`) -> `name`) AS `x`
FROM `customers` AS `customers`
