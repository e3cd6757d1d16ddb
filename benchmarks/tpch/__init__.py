"""TPC-H: data, changes and queries, for tests and benchmarks alike."""
