"""Chaos: runs of mixed guarantees while workers and servers die, and a judge. `python -m trials.chaos`."""
