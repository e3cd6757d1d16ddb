SELECT
  `id`,
  ANY_VALUE(`m`) AS `m`,
  ANY_VALUE(`v`) AS `v`,
  ANY_VALUE(`s`) AS `s`,
  ANY_VALUE(`xs`) AS `xs`,
  `plain`,
  SUM(`_vk_sign`) AS `_vk_count`,
  SUM(`_vk_old_count`) AS `_vk_old_count`
FROM (
  SELECT
    `id`,
    `m`,
    `v`,
    `s`,
    `xs`,
    `plain`,
    1 AS `_vk_sign`,
    0 AS `_vk_old_count`
  FROM `v_new`
  UNION ALL
  SELECT
    `id`,
    `m`,
    `v`,
    `s`,
    `xs`,
    `plain`,
    -1 AS `_vk_sign`,
    1 AS `_vk_old_count`
  FROM `v old`
)
GROUP BY
  `id`,
  SORT_ARRAY(MAP_ENTRIES(`m`)),
  TO_JSON(`v`),
  IF(
    `s` IS NULL,
    NULL,
    NAMED_STRUCT(
      'a',
      `s`.`a`,
      'm',
      SORT_ARRAY(TRANSFORM(MAP_ENTRIES(`s`.`m`), e -> STRUCT(e.key, TO_JSON(e.value))))
    )
  ),
  TRANSFORM(`xs`, e -> SORT_ARRAY(MAP_ENTRIES(e))),
  `plain`
HAVING
  SUM(`_vk_sign`) <> 0
