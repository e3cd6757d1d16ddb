-- STRUCT<`it``s`: STRUCT<`say 'hi'`: VARIANT>>
IF(
  `t`.`it``s` IS NULL,
  NULL,
  NAMED_STRUCT(
    'it`s',
    IF(
      `t`.`it``s`.`it``s` IS NULL,
      NULL,
      NAMED_STRUCT('say \'hi\'', TO_JSON(`t`.`it``s`.`it``s`.`say 'hi'`))
    )
  )
)
