"""The command line; uses the public API only."""
