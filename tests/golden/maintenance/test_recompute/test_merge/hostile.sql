MERGE INTO `totals`
USING `totals_changes`
ON `totals`.`_vk_copy` = `totals_changes`.`_vk_copy`
AND `totals`.`it``s` IS NOT DISTINCT FROM `totals_changes`.`it``s`
AND `totals`.`say "hi"; --` IS NOT DISTINCT FROM `totals_changes`.`say "hi"; --`
AND `totals`.`two
lines */` IS NOT DISTINCT FROM `totals_changes`.`two
lines */`
AND `totals`.`größe` IS NOT DISTINCT FROM `totals_changes`.`größe`
WHEN MATCHED AND `totals_changes`.`_vk_change` = 'delete' THEN DELETE
WHEN NOT MATCHED AND `totals_changes`.`_vk_change` = 'insert' THEN INSERT (`it``s`, `say "hi"; --`, `two
lines */`, `größe`, `_vk_copy`) VALUES (
  `totals_changes`.`it``s`,
  `totals_changes`.`say "hi"; --`,
  `totals_changes`.`two
lines */`,
  `totals_changes`.`größe`,
  `totals_changes`.`_vk_copy`
)
