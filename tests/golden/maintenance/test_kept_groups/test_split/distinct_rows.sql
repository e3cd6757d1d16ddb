SELECT r.name FROM region r LEFT JOIN (SELECT DISTINCT region FROM sale) s ON s.region = r.id

the groups of sale by `sale_1`.`region` (which there are) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (region INT, _vk_rows BIGINT)
SELECT
  `sale_1`.`region` AS `region`
FROM `sale` AS `sale_1`
GROUP BY
  `sale_1`.`region`

-- _vk_view (name STRING)
SELECT
  `r`.`name` AS `name`
FROM `region` AS `r`
LEFT JOIN (
  SELECT
    `kept_1`.`region` AS `region`
  FROM `_vk__vk_view_groups_1` AS `kept_1`
) AS `s`
  ON `s`.`region` = `r`.`id`
