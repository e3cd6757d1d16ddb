-- Passengers with more than 50,000 miles.
CREATE MATERIALIZED VIEW many_miles AS
SELECT psgr_id AS id
FROM psgr
WHERE psgr.ffn IN (SELECT ffn FROM ff WHERE miles > 50000);
