"""What is known about the nodes of a query, each fact with its reason. Imports neither Spark nor a driver."""
