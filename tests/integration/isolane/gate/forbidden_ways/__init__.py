"""Ways in which a step tries to reach what it may not: stdlib only, because they run in a sandbox."""
