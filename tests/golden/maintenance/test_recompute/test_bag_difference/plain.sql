SELECT
  `id`,
  `name`,
  `amount`,
  `_vk_copy`,
  IF(`_vk_count` > 0, 'insert', 'delete') AS `_vk_change`
FROM (
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
    FROM `totals_query`
    UNION ALL
    SELECT
      `id`,
      `name`,
      `amount`,
      -1 AS `_vk_sign`,
      1 AS `_vk_old_count`
    FROM `totals_old`
  )
  GROUP BY
    `id`,
    `name`,
    `amount`
  HAVING
    SUM(`_vk_sign`) <> 0
)
LATERAL VIEW
EXPLODE(
  SEQUENCE(
    CAST(LEAST(`_vk_old_count`, `_vk_old_count` + `_vk_count`) + 1 AS INT),
    CAST(GREATEST(`_vk_old_count`, `_vk_old_count` + `_vk_count`) AS INT)
  )
) AS `_vk_copy`
