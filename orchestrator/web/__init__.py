"""The web server: uvicorn with limits on what a caller may send, hold and wait for, before any login."""
