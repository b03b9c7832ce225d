"""Django's system checks of the platform's settings, for whoever does not let `orchestrator.env` read them."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from foundation.samples import sample_in

SAMPLE_VALUE = "isolane.E001"


@register(Tags.security)
def check_samples(app_configs: Any, **_: Any) -> list[Error]:
    """Refuse values that everybody knows."""
    return [
        Error(
            f"{name} has the published sample value {sample!r}, which everybody knows.",
            hint="Set one of your own; 'isolane keys generate' makes encryption keys.",
            id=SAMPLE_VALUE,
        )
        for name, value in _values()
        if (sample := sample_in(name, value))
    ]


def _values() -> Iterator[tuple[str, str]]:
    with suppress(ImproperlyConfigured):  # of a process that needs none
        yield "SECRET_KEY", settings.SECRET_KEY
    yield "ENCRYPTION_KEYS", " ".join(settings.ENCRYPTION_KEYS)
    yield "REDIS_URL", settings.REDIS_URL
    yield "ISOLANE_CACHE_URL", settings.CACHE_URL
    for alias, variable in (("default", "DATABASE_URL"), ("owner", "DATABASE_OWNER_URL")):
        password = settings.DATABASES.get(alias, {}).get("PASSWORD", "")
        yield variable, f"postgresql://:{password}@"
