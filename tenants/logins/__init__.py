"""Signing in: how often somebody may try, what a try may cost, and what is written down of it."""
