"""Importing this is running it."""

raise SystemExit("run")
