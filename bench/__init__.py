"""The benchmark: runs of the platform next to what a team would write with Celery alone. `python -m bench`."""
