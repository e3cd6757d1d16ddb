-- SELECT id FROM orders EXCEPT ALL (SELECT id FROM customers INTERSECT SELECT order_id FROM items)
-- reads orders as orders
-- reads customers as customers
-- reads items as items
-- gives id

SELECT
  `orders`.`id` AS `id`
FROM `orders` AS `orders`
EXCEPT ALL
(
  SELECT
    `customers`.`id` AS `id`
  FROM `customers` AS `customers`
  INTERSECT
  SELECT
    `items`.`order_id` AS `order_id`
  FROM `items` AS `items`
)
