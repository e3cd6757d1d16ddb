WITH t AS (SELECT region, sum(x) AS total, count(*) AS n FROM sale GROUP BY region) SELECT a.region FROM t a JOIN t b ON a.total > b.total

the groups of sale by `sale_1`.`region` (SUM(`sale_1`.`x`), COUNT(*)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (region INT, sum_1 DECIMAL(20,2), count_1 BIGINT, _vk_rows BIGINT, _vk_count_2 BIGINT)
SELECT
  `sale_1`.`region` AS `region`,
  SUM(`sale_1`.`x`) AS `sum_1`,
  COUNT(*) AS `count_1`
FROM `sale` AS `sale_1`
GROUP BY
  `sale_1`.`region`

-- _vk_view (region INT)
SELECT
  `a`.`region` AS `region`
FROM (
  SELECT
    `kept_1`.`region` AS `region`,
    `kept_1`.`sum_1` AS `total`,
    `kept_1`.`count_1` AS `n`
  FROM `_vk__vk_view_groups_1` AS `kept_1`
) AS `a`
INNER JOIN (
  SELECT
    `kept_2`.`region` AS `region`,
    `kept_2`.`sum_1` AS `total`,
    `kept_2`.`count_1` AS `n`
  FROM `_vk__vk_view_groups_1` AS `kept_2`
) AS `b`
  ON `a`.`total` > `b`.`total`
