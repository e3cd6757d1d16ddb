SELECT r.name FROM region r JOIN (SELECT region % 2 AS parity, max(x) AS most FROM sale WHERE x > 0 GROUP BY region % 2) s ON s.parity = r.id

the groups of sale by `sale_1`.`region` % 2 (MAX(`sale_1`.`x`)) are kept in a hidden view if their types allow it and their sizes at CREATE make it pay

-- _vk__vk_view_groups_1 (key_1 INT, max_1 DECIMAL(8,2), _vk_rows BIGINT)
SELECT
  `sale_1`.`region` % 2 AS `key_1`,
  MAX(`sale_1`.`x`) AS `max_1`
FROM `sale` AS `sale_1`
WHERE
  `sale_1`.`x` > 0
GROUP BY
  `sale_1`.`region` % 2

-- _vk_view (name STRING)
SELECT
  `r`.`name` AS `name`
FROM `region` AS `r`
INNER JOIN (
  SELECT
    `kept_1`.`key_1` AS `parity`,
    `kept_1`.`max_1` AS `most`
  FROM `_vk__vk_view_groups_1` AS `kept_1`
) AS `s`
  ON `s`.`parity` = `r`.`id`
