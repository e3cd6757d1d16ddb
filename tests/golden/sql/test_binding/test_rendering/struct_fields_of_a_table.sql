-- SELECT customers.address.geo.lon FROM customers
-- reads customers as customers
-- gives lon

SELECT
  `customers`.`address`.`geo`.`lon` AS `lon`
FROM `customers` AS `customers`
