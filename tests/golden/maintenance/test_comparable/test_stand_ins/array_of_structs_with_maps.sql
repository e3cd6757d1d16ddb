-- ARRAY<STRUCT<a: INT, m: MAP<STRING, ARRAY<VARIANT>>>>
TRANSFORM(
  `t`.`it``s`,
  e -> IF(
    e IS NULL,
    NULL,
    NAMED_STRUCT(
      'a',
      e.`a`,
      'm',
      SORT_ARRAY(
        TRANSFORM(MAP_ENTRIES(e.`m`), e -> STRUCT(e.key, TRANSFORM(e.value, e -> TO_JSON(e))))
      )
    )
  )
)
