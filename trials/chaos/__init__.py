"""The chaos trial: runs of all guarantees while workers and servers fail. `python -m trials.chaos`."""
