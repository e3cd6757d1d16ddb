-- SELECT /*+ BROADCAST(customers) */ name FROM orders, customers
-- reads orders as orders
-- reads customers as customers
-- gives name

SELECT /*+ BROADCAST(`customers`) */
  `customers`.`name` AS `name`
FROM `orders` AS `orders`
CROSS JOIN `customers` AS `customers`
