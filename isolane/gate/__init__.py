"""The gate, as far as it runs in a sandbox: names, listeners and bytes of the run's own network."""
