"""The database backend."""
