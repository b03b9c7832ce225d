"""Runs that outlive their workers, at every boundary."""
