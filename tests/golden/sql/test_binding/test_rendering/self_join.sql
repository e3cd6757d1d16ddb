-- SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b ON a.id = b.customer_id
-- reads orders as orders
-- gives id, other

SELECT
  `a`.`id` AS `id`,
  `b`.`id` AS `other`
FROM `orders` AS `a`
LEFT JOIN `orders` AS `b`
  ON `a`.`id` = `b`.`customer_id`
