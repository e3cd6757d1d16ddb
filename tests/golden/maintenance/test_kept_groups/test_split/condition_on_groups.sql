SELECT region, sum(x) AS total FROM sale GROUP BY region HAVING min(x) < 3

the groups of sale by `sale_1`.`region` (SUM(`sale_1`.`x`), MIN(`sale_1`.`x`)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (region INT, sum_1 DECIMAL(20,2), min_1 DECIMAL(8,2), _vk_rows BIGINT, _vk_count_1 BIGINT)
SELECT
  `sale_1`.`region` AS `region`,
  SUM(`sale_1`.`x`) AS `sum_1`,
  MIN(`sale_1`.`x`) AS `min_1`
FROM `sale` AS `sale_1`
GROUP BY
  `sale_1`.`region`

-- _vk_view (region INT, total DECIMAL(20,2))
SELECT
  `kept_1`.`region` AS `region`,
  `kept_1`.`sum_1` AS `total`
FROM `_vk__vk_view_groups_1` AS `kept_1`
WHERE
  `kept_1`.`min_1` < 3
