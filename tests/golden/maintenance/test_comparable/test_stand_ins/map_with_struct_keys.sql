-- MAP<STRUCT<a: INT>, ARRAY<MAP<INT, INT>>>
ARRAY_SORT(
  TRANSFORM(
    MAP_ENTRIES(`t`.`it``s`),
    e -> STRUCT(e.key, TRANSFORM(e.value, e -> ARRAY_SORT(MAP_ENTRIES(e))))
  )
)
