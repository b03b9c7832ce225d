"""Providers: open, check and dispose of resources inside a runtime; one module for each type."""
