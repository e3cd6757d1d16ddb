-- SELECT * FROM orders JOIN items ON orders.id = order_id
-- reads orders as orders
-- reads items as items
-- gives id, customer_id, amount, placed, order_id, product, quantity, prices

SELECT
  `orders`.`id` AS `id`,
  `orders`.`customer_id` AS `customer_id`,
  `orders`.`amount` AS `amount`,
  `orders`.`placed` AS `placed`,
  `items`.`order_id` AS `order_id`,
  `items`.`product` AS `product`,
  `items`.`quantity` AS `quantity`,
  `items`.`prices` AS `prices`
FROM `orders` AS `orders`
JOIN `items` AS `items`
  ON `orders`.`id` = `items`.`order_id`
