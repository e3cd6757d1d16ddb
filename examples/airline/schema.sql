-- Flights, reservations, passengers and frequent fliers. Every table has several keys: views are analysed with all of them.
-- RELY: the system that takes reservations sees to these keys itself, so refreshes go by the rules that follow from them.
CREATE TABLE flight (
  flight_id INT PRIMARY KEY RELY,
  flight_no INT NOT NULL,
  date      DATE NOT NULL,
  UNIQUE (flight_no, date)
);

CREATE TABLE res (
  res_id    INT PRIMARY KEY RELY,
  psgr_id   INT NOT NULL,
  flight_id INT NOT NULL,
  seat      STRING NOT NULL,
  UNIQUE (psgr_id, flight_id),
  UNIQUE (flight_id, seat) RELY
);

CREATE TABLE psgr (
  psgr_id INT PRIMARY KEY RELY,
  name    STRING,
  phone   STRING,
  meal    STRING,
  ffn     INT NOT NULL UNIQUE
);

CREATE TABLE ff (
  ffn   INT PRIMARY KEY RELY,
  miles INT
);

INSERT INTO flight VALUES (7, 100, DATE '2026-05-01'), (8, 100, DATE '2026-05-02'), (9, 200, DATE '2026-05-01');
INSERT INTO psgr VALUES
  (1, 'Ada', '555-1', 'vegan', 11), (2, 'Ben', '555-2', NULL, 12),
  (3, 'Cleo', '555-3', 'kosher', 13), (4, 'Dan', NULL, 'vegan', 14);
INSERT INTO res VALUES
  (21, 1, 7, '1A'), (22, 2, 7, '1B'), (23, 3, 7, '2A'), (24, 3, 8, '1A'), (25, 4, 6, '9C');
INSERT INTO ff VALUES (11, 80000), (12, 20000), (13, 50001);
