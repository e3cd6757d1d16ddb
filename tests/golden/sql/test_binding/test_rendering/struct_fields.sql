-- SELECT address.street, c.address.geo.lat AS lat FROM customers c
-- reads customers as customers
-- gives street, lat

SELECT
  `c`.`address`.`street` AS `street`,
  `c`.`address`.`geo`.`lat` AS `lat`
FROM `customers` AS `c`
