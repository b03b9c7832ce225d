"""Signing in: limits on tries, on their cost, and on what is recorded of them."""
