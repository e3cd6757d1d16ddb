-- STRUCT<a: INT, m: MAP<STRING, INT>>
IF(
  `t`.`it``s` IS NULL,
  NULL,
  NAMED_STRUCT('a', `t`.`it``s`.`a`, 'm', SORT_ARRAY(MAP_ENTRIES(`t`.`it``s`.`m`)))
)
