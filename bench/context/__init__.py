"""The cost of the context: the same chains with it and without it. `python -m bench.context`."""
