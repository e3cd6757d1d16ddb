"""How a change reaches a view: plans as data. Imports neither Spark nor a driver."""
