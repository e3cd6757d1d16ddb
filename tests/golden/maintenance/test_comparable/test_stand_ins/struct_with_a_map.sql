-- STRUCT<a: INT, m: MAP<STRING, INT>>
IF(
  `t`.`it``s` IS NULL,
  NULL,
  NAMED_STRUCT('a', `t`.`it``s`.`a`, 'm', ARRAY_SORT(MAP_ENTRIES(`t`.`it``s`.`m`)))
)
