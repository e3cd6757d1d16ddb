MERGE INTO `totals`
USING `totals_changes`
ON `totals`.`_vk_copy` = `totals_changes`.`_vk_copy`
AND `totals`.`id` IS NOT DISTINCT FROM `totals_changes`.`id`
AND ARRAY_SORT(MAP_ENTRIES(`totals`.`m`)) IS NOT DISTINCT FROM ARRAY_SORT(MAP_ENTRIES(`totals_changes`.`m`))
AND TO_JSON(`totals`.`v`) IS NOT DISTINCT FROM TO_JSON(`totals_changes`.`v`)
AND IF(
  `totals`.`s` IS NULL,
  NULL,
  NAMED_STRUCT(
    'a',
    `totals`.`s`.`a`,
    'm',
    ARRAY_SORT(TRANSFORM(MAP_ENTRIES(`totals`.`s`.`m`), e -> STRUCT(e.key, TO_JSON(e.value))))
  )
) IS NOT DISTINCT FROM IF(
  `totals_changes`.`s` IS NULL,
  NULL,
  NAMED_STRUCT(
    'a',
    `totals_changes`.`s`.`a`,
    'm',
    ARRAY_SORT(
      TRANSFORM(MAP_ENTRIES(`totals_changes`.`s`.`m`), e -> STRUCT(e.key, TO_JSON(e.value)))
    )
  )
)
AND TRANSFORM(`totals`.`xs`, e -> ARRAY_SORT(MAP_ENTRIES(e))) IS NOT DISTINCT FROM TRANSFORM(`totals_changes`.`xs`, e -> ARRAY_SORT(MAP_ENTRIES(e)))
AND `totals`.`plain` IS NOT DISTINCT FROM `totals_changes`.`plain`
WHEN MATCHED AND `totals_changes`.`_vk_change` = 'delete' THEN DELETE
WHEN NOT MATCHED AND `totals_changes`.`_vk_change` = 'insert' THEN INSERT (`id`, `m`, `v`, `s`, `xs`, `plain`, `_vk_copy`) VALUES (
  `totals_changes`.`id`,
  `totals_changes`.`m`,
  `totals_changes`.`v`,
  `totals_changes`.`s`,
  `totals_changes`.`xs`,
  `totals_changes`.`plain`,
  `totals_changes`.`_vk_copy`
)
