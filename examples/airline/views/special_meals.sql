-- Seats and meals of everybody on flight 7 who ordered a special meal.
CREATE MATERIALIZED VIEW special_meals AS
SELECT res.seat, psgr.meal
FROM res, psgr
WHERE res.flight_id = 7 AND res.psgr_id = psgr.psgr_id AND psgr.meal IS NOT NULL;
