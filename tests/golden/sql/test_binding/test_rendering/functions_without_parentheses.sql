-- SELECT current_date(), user, id FROM orders
-- reads orders as orders
-- gives _col_0, user, id

SELECT
  CURRENT_DATE() AS `_col_0`,
  `user` AS `user`,
  `orders`.`id` AS `id`
FROM `orders` AS `orders`
