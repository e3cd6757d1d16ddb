-- SELECT o.* FROM orders o JOIN customers c ON o.customer_id = c.id
-- reads orders as orders
-- reads customers as customers
-- gives id, customer_id, amount, placed

SELECT
  `o`.`id` AS `id`,
  `o`.`customer_id` AS `customer_id`,
  `o`.`amount` AS `amount`,
  `o`.`placed` AS `placed`
FROM `orders` AS `o`
JOIN `customers` AS `c`
  ON `o`.`customer_id` = `c`.`id`
