SELECT
  `id`,
  `m`,
  `v`,
  `s`,
  `xs`,
  `plain`,
  `_vk_copy`,
  TO_JSON(
    STRUCT(
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
      TRANSFORM(`xs`, e -> SORT_ARRAY(MAP_ENTRIES(e)))
    )
  ) AS `_vk_identity`
FROM (
  SELECT
    `id`,
    ANY_VALUE(`m`) AS `m`,
    ANY_VALUE(`v`) AS `v`,
    ANY_VALUE(`s`) AS `s`,
    ANY_VALUE(`xs`) AS `xs`,
    `plain`,
    COUNT(*) AS `_vk_count`
  FROM `v_query`
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
)
LATERAL VIEW
EXPLODE(SEQUENCE(1, CAST(`_vk_count` AS INT))) AS `_vk_copy`
