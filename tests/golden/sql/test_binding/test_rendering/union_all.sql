-- SELECT id FROM orders UNION ALL SELECT id FROM customers
-- reads orders as orders
-- reads customers as customers
-- gives id

SELECT
  `orders`.`id` AS `id`
FROM `orders` AS `orders`
UNION ALL
SELECT
  `customers`.`id` AS `id`
FROM `customers` AS `customers`
