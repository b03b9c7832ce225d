"""The benchmark: runs of the platform beside chains that a team would write with Celery alone. `python -m bench`."""
