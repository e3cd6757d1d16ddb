"""The floor: the change of a view from the changes of its inputs, as signed bags."""
