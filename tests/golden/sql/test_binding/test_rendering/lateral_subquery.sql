-- SELECT o.id, l.q FROM orders o, LATERAL (SELECT SUM(quantity) AS q FROM items WHERE order_id = o.id) l
-- reads orders as orders
-- reads items as items
-- gives id, q

SELECT
  `o`.`id` AS `id`,
  `l`.`q` AS `q`
FROM `orders` AS `o`
CROSS JOIN LATERAL (
  SELECT
    SUM(`items`.`quantity`) AS `q`
  FROM `items` AS `items`
  WHERE
    `items`.`order_id` = `o`.`id`
) AS `l`
