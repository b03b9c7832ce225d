"""The `CELERY_` settings of Django as a plain mapping.

Celery looks settings up several times for every message, most of them ones that nobody has set, and Django's own object
takes long to say that it has none.
"""

from django.conf import settings

SETTINGS = {
    name.removeprefix("CELERY_").lower(): getattr(settings, name)
    for name in dir(settings)
    if name.startswith("CELERY_")
}
