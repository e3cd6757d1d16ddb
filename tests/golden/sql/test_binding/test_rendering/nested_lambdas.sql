-- SELECT FILTER(tags, t -> EXISTS(tags, u -> u > t)) AS x FROM customers
-- reads customers as customers
-- gives x

SELECT
  FILTER(`customers`.`tags`, `t` -> EXISTS(`customers`.`tags`, `u` -> `u` > `t`)) AS `x`
FROM `customers` AS `customers`
