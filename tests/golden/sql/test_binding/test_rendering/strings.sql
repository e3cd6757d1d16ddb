-- SELECT id FROM customers WHERE name IN ('it''s', "a""b", 'a""b', '\n')
-- reads customers as customers
-- gives id

SELECT
  `customers`.`id` AS `id`
FROM `customers` AS `customers`
WHERE
  `customers`.`name` IN ('it\'s', 'a"b', 'a""b', '\n')
