"""What opens, checks and disposes of resources inside a runtime; one module for each type."""
