"""Django's `CELERY_` settings as a plain mapping.

Celery looks settings up several times for every message, mostly unset ones, and a failed lookup in Django's own object
is slow.
"""

from django.conf import settings

SETTINGS = {
    name.removeprefix("CELERY_").lower(): getattr(settings, name)
    for name in dir(settings)
    if name.startswith("CELERY_")
}
