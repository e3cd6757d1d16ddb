SELECT
  `id`,
  `name`,
  `amount`,
  `_vk_copy`
FROM (
  SELECT
    `id`,
    `name`,
    `amount`,
    COUNT(*) AS `_vk_count`
  FROM `v_query`
  GROUP BY
    `id`,
    `name`,
    `amount`
)
LATERAL VIEW
EXPLODE(SEQUENCE(1, CAST(`_vk_count` AS INT))) AS `_vk_copy`
