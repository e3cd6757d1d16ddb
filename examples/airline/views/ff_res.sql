-- Frequent flier numbers of passengers with reservations: once for each reservation.
CREATE MATERIALIZED VIEW ff_res AS
SELECT psgr.ffn
FROM psgr, res
WHERE psgr.psgr_id = res.psgr_id;
