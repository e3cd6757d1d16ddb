-- A small shop: who buys, what is sold, what was bought.

CREATE TABLE customer (
  customer_id INT PRIMARY KEY,
  name        STRING NOT NULL,
  city        STRING COMMENT 'where the customer lives'
);

CREATE TABLE product (
  product_id INT PRIMARY KEY,
  name       STRING NOT NULL,
  price      DECIMAL(8,2) NOT NULL
);

CREATE TABLE sale (
  sale_id     INT PRIMARY KEY,
  customer_id INT NOT NULL,
  product_id  INT NOT NULL,
  quantity    INT NOT NULL,
  sold_on     DATE,
  CONSTRAINT sale_customer FOREIGN KEY (customer_id) REFERENCES customer (customer_id),
  CONSTRAINT sale_product  FOREIGN KEY (product_id)  REFERENCES product (product_id)
);

INSERT INTO customer VALUES (1, 'Ada', 'Oslo'), (2, 'Bo', 'Bergen'), (3, 'Cy', 'Oslo');
INSERT INTO product VALUES (1, 'ball', 2.50), (2, 'doll', 8.00), (3, 'kite', 12.00), (4, 'robot', 30.00);
INSERT INTO sale VALUES
  (1, 1, 1, 4, DATE '2026-03-01'),
  (2, 3, 1, 4, DATE '2026-03-01'),
  (3, 2, 2, 1, DATE '2026-03-02'),
  (4, 1, 3, 2, DATE '2026-03-03');
