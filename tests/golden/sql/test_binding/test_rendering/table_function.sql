-- SELECT r.id, amount FROM range(3) r JOIN orders o ON r.id = o.id
-- reads orders as orders
-- gives id, amount

SELECT
  `r`.`id` AS `id`,
  `o`.`amount` AS `amount`
FROM RANGE(3) AS `r`
JOIN `orders` AS `o`
  ON `r`.`id` = `o`.`id`
