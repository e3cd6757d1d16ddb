-- SELECT ID, Orders.AMOUNT FROM ORDERS
-- reads orders as orders
-- gives id, amount

SELECT
  `orders`.`id` AS `id`,
  `orders`.`amount` AS `amount`
FROM `orders` AS `orders`
