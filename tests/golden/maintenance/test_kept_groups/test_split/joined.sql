SELECT r.name, s.total, s.n FROM region r JOIN (SELECT region, sum(x) AS total, count(*) AS n FROM sale GROUP BY region) s ON s.region = r.id

the groups of sale by `sale_1`.`region` (SUM(`sale_1`.`x`), COUNT(*)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (region INT, sum_1 DECIMAL(20,2), count_1 BIGINT, _vk_rows BIGINT, _vk_count_2 BIGINT)
SELECT
  `sale_1`.`region` AS `region`,
  SUM(`sale_1`.`x`) AS `sum_1`,
  COUNT(*) AS `count_1`
FROM `sale` AS `sale_1`
GROUP BY
  `sale_1`.`region`

-- _vk_view (name STRING, total DECIMAL(20,2), n BIGINT)
SELECT
  `r`.`name` AS `name`,
  `s`.`total` AS `total`,
  `s`.`n` AS `n`
FROM `region` AS `r`
INNER JOIN (
  SELECT
    `kept_1`.`region` AS `region`,
    `kept_1`.`sum_1` AS `total`,
    `kept_1`.`count_1` AS `n`
  FROM `_vk__vk_view_groups_1` AS `kept_1`
) AS `s`
  ON `s`.`region` = `r`.`id`
