CREATE TABLE delta.`/data/it``s` (
  `id` BIGINT NOT NULL COMMENT 'the order\'s number',
  `it``s; --` STRING DEFAULT 'it''s',
  `placed` TIMESTAMP DEFAULT current_timestamp(),
  `amount` DECIMAL(10,2) NOT NULL DEFAULT 1 + 2 * 3 COMMENT 'a\nb',
  `nothing` INT DEFAULT NULL,
  `nested` MAP<STRING, STRUCT<`a b`: ARRAY<INT>, `c``d`: VARIANT>>
)
USING DELTA
COMMENT 'Orders, it\'s said; -- all'
TBLPROPERTIES (
  'delta.enableChangeDataFeed'='true',
  'it\'s'='a "b" \\ c'
)
