"""Our database backend."""
