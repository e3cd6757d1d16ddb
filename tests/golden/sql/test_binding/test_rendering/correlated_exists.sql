-- SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id AND amount > 5)
-- reads customers as customers
-- reads orders as orders
-- gives name

SELECT
  `c`.`name` AS `name`
FROM `customers` AS `c`
WHERE
  EXISTS(
    SELECT
      1 AS `1`
    FROM `orders` AS `orders`
    WHERE
      `orders`.`customer_id` = `c`.`id` AND `orders`.`amount` > 5
  )
