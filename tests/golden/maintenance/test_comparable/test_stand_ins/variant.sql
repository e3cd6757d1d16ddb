-- VARIANT
TO_JSON(`t`.`it``s`)
