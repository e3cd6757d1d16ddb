SELECT r.name FROM region r JOIN (SELECT n, count(*) AS c FROM (SELECT region, sum(x) AS total, count(*) AS n FROM sale GROUP BY region) t GROUP BY n) u ON u.c = r.id

the groups of sale by `sale_1`.`region` (SUM(`sale_1`.`x`), COUNT(*)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay
the groups of _vk__vk_view_groups_1 by `part_1`.`n` (COUNT(*)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (region INT, sum_1 DECIMAL(20,2), count_1 BIGINT, _vk_rows BIGINT, _vk_count_2 BIGINT)
SELECT
  `sale_1`.`region` AS `region`,
  SUM(`sale_1`.`x`) AS `sum_1`,
  COUNT(*) AS `count_1`
FROM `sale` AS `sale_1`
GROUP BY
  `sale_1`.`region`

-- _vk__vk_view_groups_2 (n BIGINT, count_1 BIGINT, _vk_rows BIGINT)
SELECT
  `part_1`.`n` AS `n`,
  COUNT(*) AS `count_1`
FROM (
  SELECT
    `_vk__vk_view_groups_1_1`.`region` AS `region`,
    `_vk__vk_view_groups_1_1`.`sum_1` AS `total`,
    `_vk__vk_view_groups_1_1`.`count_1` AS `n`
  FROM `_vk__vk_view_groups_1` AS `_vk__vk_view_groups_1_1`
) AS `part_1`
GROUP BY
  `part_1`.`n`

-- _vk_view (name STRING)
SELECT
  `r`.`name` AS `name`
FROM `region` AS `r`
INNER JOIN (
  SELECT
    `kept_2`.`n` AS `n`,
    `kept_2`.`count_1` AS `c`
  FROM `_vk__vk_view_groups_2` AS `kept_2`
) AS `u`
  ON `u`.`c` = `r`.`id`
