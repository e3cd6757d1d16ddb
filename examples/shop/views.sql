-- One row for each sale. There is no key among the columns, so equal rows stay, as often as they occur.
CREATE MATERIALIZED VIEW sale_detail AS
SELECT p.name AS product, c.city AS city, s.quantity AS quantity, s.quantity * p.price AS amount
FROM sale AS s
JOIN product AS p ON s.product_id = p.product_id
JOIN customer AS c ON s.customer_id = c.customer_id;

-- A view over a view.
CREATE MATERIALIZED VIEW revenue COMMENT 'pieces and money by product' AS
SELECT product, sum(quantity) AS sold, sum(amount) AS total
FROM sale_detail
GROUP BY product;

-- Products that nobody has bought yet.
CREATE MATERIALIZED VIEW unsold AS
SELECT p.product_id, p.name
FROM product AS p
LEFT JOIN sale AS s ON s.product_id = p.product_id
WHERE s.sale_id IS NULL;
