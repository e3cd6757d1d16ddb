-- SELECT id FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders i WHERE i.customer_id = o.customer_id)
-- reads orders as orders
-- gives id

SELECT
  `o`.`id` AS `id`
FROM `orders` AS `o`
WHERE
  `o`.`amount` > (
    SELECT
      AVG(`i`.`amount`) AS `_col_0`
    FROM `orders` AS `i`
    WHERE
      `i`.`customer_id` = `o`.`customer_id`
  )
