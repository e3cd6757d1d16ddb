-- SELECT props['a'] AS a, tags[0] AS first FROM customers
-- reads customers as customers
-- gives a, first

SELECT
  `customers`.`props`['a'] AS `a`,
  `customers`.`tags`[0] AS `first`
FROM `customers` AS `customers`
