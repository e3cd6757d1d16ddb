-- SELECT sales.orders.id, sales.orders.place.geo.lat FROM sales.orders
-- reads sales.orders as sales_orders
-- gives id, lat

SELECT
  `orders`.`id` AS `id`,
  `orders`.`place`.`geo`.`lat` AS `lat`
FROM `sales_orders` AS `orders`
