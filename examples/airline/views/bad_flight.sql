-- Reservations for flights that do not exist.
CREATE MATERIALIZED VIEW bad_flight AS
SELECT res_id
FROM res
WHERE NOT EXISTS (SELECT * FROM flight WHERE flight.flight_id = res.flight_id);
