-- ARRAY<ARRAY<VARIANT>>
TRANSFORM(`t`.`it``s`, e -> TRANSFORM(e, e -> TO_JSON(e)))
