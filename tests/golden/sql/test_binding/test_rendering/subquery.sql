-- SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM items)
-- reads orders as orders
-- reads items as items
-- gives id

SELECT
  `orders`.`id` AS `id`
FROM `orders` AS `orders`
WHERE
  `orders`.`id` NOT IN (
    SELECT
      `items`.`order_id` AS `order_id`
    FROM `items` AS `items`
  )
