-- SELECT o.id, s.region FROM orders o JOIN sales.orders s ON o.id = s.id
-- reads orders as orders
-- reads sales.orders as sales_orders
-- gives id, region

SELECT
  `o`.`id` AS `id`,
  `s`.`region` AS `region`
FROM `orders` AS `o`
JOIN `sales_orders` AS `s`
  ON `o`.`id` = `s`.`id`
