-- SELECT k, v FROM orders UNPIVOT (v FOR k IN (id, customer_id))
-- reads orders as orders
-- gives k, v

SELECT
  `orders`.`k` AS `k`,
  `orders`.`v` AS `v`
FROM (
  SELECT
    *
  FROM `orders` AS `orders`
  UNPIVOT(`v` FOR `k` IN (`id`, `customer_id`))
) AS `orders`
