MERGE INTO `totals`
USING `totals_changes`
ON `totals`.`_vk_copy` = `totals_changes`.`_vk_copy`
AND `totals`.`id` IS NOT DISTINCT FROM `totals_changes`.`id`
AND SORT_ARRAY(MAP_ENTRIES(`totals`.`m`)) IS NOT DISTINCT FROM SORT_ARRAY(MAP_ENTRIES(`totals_changes`.`m`))
AND TO_JSON(`totals`.`v`) IS NOT DISTINCT FROM TO_JSON(`totals_changes`.`v`)
AND `totals`.`plain` IS NOT DISTINCT FROM `totals_changes`.`plain`
AND `totals`.`_vk_identity` = `totals_changes`.`_vk_identity`
WHEN MATCHED AND `totals_changes`.`_vk_change` = 'delete' THEN DELETE
WHEN NOT MATCHED AND `totals_changes`.`_vk_change` = 'insert' THEN INSERT (`id`, `m`, `v`, `s`, `xs`, `plain`, `_vk_copy`, `_vk_identity`) VALUES (
  `totals_changes`.`id`,
  `totals_changes`.`m`,
  `totals_changes`.`v`,
  `totals_changes`.`s`,
  `totals_changes`.`xs`,
  `totals_changes`.`plain`,
  `totals_changes`.`_vk_copy`,
  `totals_changes`.`_vk_identity`
)
