"""The gate: the only way from a sandbox to a network. Worker side."""
