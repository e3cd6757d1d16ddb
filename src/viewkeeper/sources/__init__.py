"""Where data and changes come from."""
