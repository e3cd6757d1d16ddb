"""A query as a tree of a few immutable nodes. Imports neither Spark nor a driver."""
