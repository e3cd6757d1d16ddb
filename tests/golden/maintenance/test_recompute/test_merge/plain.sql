MERGE INTO `totals`
USING `totals_changes`
ON `totals`.`_vk_copy` = `totals_changes`.`_vk_copy`
AND `totals`.`id` IS NOT DISTINCT FROM `totals_changes`.`id`
AND `totals`.`name` IS NOT DISTINCT FROM `totals_changes`.`name`
AND `totals`.`amount` IS NOT DISTINCT FROM `totals_changes`.`amount`
WHEN MATCHED AND `totals_changes`.`_vk_change` = 'delete' THEN DELETE
WHEN NOT MATCHED AND `totals_changes`.`_vk_change` = 'insert' THEN INSERT (`id`, `name`, `amount`, `_vk_copy`) VALUES (
  `totals_changes`.`id`,
  `totals_changes`.`name`,
  `totals_changes`.`amount`,
  `totals_changes`.`_vk_copy`
)
