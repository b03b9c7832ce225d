"""Brokers: they log in at a remote server for a run, which gets the connection and never the secret."""
