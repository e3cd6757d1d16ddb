-- SELECT id, name, region FROM customers JOIN sales.orders USING (id)
-- reads customers as customers
-- reads sales.orders as sales_orders
-- gives id, name, region

SELECT
  COALESCE(`customers`.`id`, `orders`.`id`) AS `id`,
  `customers`.`name` AS `name`,
  `orders`.`region` AS `region`
FROM `customers` AS `customers`
JOIN `sales_orders` AS `orders`
  ON `customers`.`id` = `orders`.`id`
