"""The composition root: settings, Celery, URLs, commands, the embedded stack."""
