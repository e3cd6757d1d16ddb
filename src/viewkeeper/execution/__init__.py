"""Runs plans on Spark and publishes epochs. Knows nothing of how plans are derived."""
