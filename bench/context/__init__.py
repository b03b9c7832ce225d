"""The cost of the context: the same chains with it and without. `python -m bench.context`."""
