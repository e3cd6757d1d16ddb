-- A day in the shop: a first robot is sold, the doll becomes dearer, one sale of balls is taken back.
INSERT INTO sale VALUES (5, 2, 4, 1, DATE '2026-03-04');
UPDATE product SET price = 9.00 WHERE product_id = 2;
DELETE FROM sale WHERE sale_id = 2;

-- Bring all views to the same versions of the tables.
REFRESH ALL;

SELECT product, sold, total FROM revenue ORDER BY product;

-- What revenue showed when it was created.
SELECT product, sold, total FROM revenue AS OF EPOCH 2 ORDER BY product;

-- Compare each view with its query.
VERIFY MATERIALIZED VIEW sale_detail;
VERIFY MATERIALIZED VIEW revenue;
VERIFY MATERIALIZED VIEW unsold;
