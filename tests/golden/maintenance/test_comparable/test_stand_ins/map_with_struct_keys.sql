-- MAP<STRUCT<a: INT>, ARRAY<MAP<INT, INT>>>
SORT_ARRAY(
  TRANSFORM(
    MAP_ENTRIES(`t`.`it``s`),
    e -> STRUCT(e.key, TRANSFORM(e.value, e -> SORT_ARRAY(MAP_ENTRIES(e))))
  )
)
