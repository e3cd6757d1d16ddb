-- SELECT name, amount FROM orders JOIN customers ON customer_id = customers.id
-- reads orders as orders
-- reads customers as customers
-- gives name, amount

SELECT
  `customers`.`name` AS `name`,
  `orders`.`amount` AS `amount`
FROM `orders` AS `orders`
JOIN `customers` AS `customers`
  ON `orders`.`customer_id` = `customers`.`id`
