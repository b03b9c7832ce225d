"""The levels of isolation: runs of few and many tenants, beside forks without a platform. `python -m bench.levels`."""
