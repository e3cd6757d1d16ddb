"""Which changes of a table reach a view without looking at everything again: bound columns, duplicates, safe references."""
