-- SELECT id, (SELECT SUM(quantity) FROM items WHERE order_id = id) AS pieces FROM orders
-- reads items as items
-- reads orders as orders
-- gives id, pieces

SELECT
  `orders`.`id` AS `id`,
  (
    SELECT
      SUM(`items`.`quantity`) AS `_col_0`
    FROM `items` AS `items`
    WHERE
      `items`.`order_id` = `orders`.`id`
  ) AS `pieces`
FROM `orders` AS `orders`
