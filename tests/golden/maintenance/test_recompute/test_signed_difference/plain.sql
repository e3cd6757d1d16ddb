SELECT
  `id`,
  `name`,
  `amount`,
  SUM(`_vk_sign`) AS `_vk_count`,
  SUM(`_vk_old_count`) AS `_vk_old_count`
FROM (
  SELECT
    `id`,
    `name`,
    `amount`,
    1 AS `_vk_sign`,
    0 AS `_vk_old_count`
  FROM `v_new`
  UNION ALL
  SELECT
    `id`,
    `name`,
    `amount`,
    -1 AS `_vk_sign`,
    1 AS `_vk_old_count`
  FROM `v old`
)
GROUP BY
  `id`,
  `name`,
  `amount`
HAVING
  SUM(`_vk_sign`) <> 0
