SELECT id FROM sale WHERE x > (SELECT avg(x) FROM sale)

the groups of sale (AVG(`sale_1`.`x`)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (avg_1 DOUBLE, _vk_rows BIGINT, _vk_count_1 BIGINT, _vk_sum_1 DECIMAL(20,2))
SELECT
  AVG(`sale_1`.`x`) AS `avg_1`
FROM `sale` AS `sale_1`

-- _vk_view (id INT)
SELECT
  `sale`.`id` AS `id`
FROM `sale` AS `sale`
INNER JOIN (
  SELECT
    `kept_1`.`avg_1` AS `_vk_aggregate_1`
  FROM `_vk__vk_view_groups_1` AS `kept_1`
) AS `value_of`
  ON `sale`.`x` > `value_of`.`_vk_aggregate_1`
