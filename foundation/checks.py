"""Django system checks of secrets and servers.

`orchestrator.env` refuses most of these values when it reads the environment; the checks cover settings that come from
elsewhere. `docs/configuration.md` lists all ids.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from foundation.keyring import is_valid_key
from foundation.redis_address import server_of
from foundation.samples import sample_in

SAMPLE_VALUE = "isolane.E001"
INVALID_KEY = "isolane.E002"
NO_KEY = "isolane.E003"
CACHE_IS_BROKER = "isolane.E006"
GENERATE = "'isolane keys generate' makes a key."


@register(Tags.security)
def check_samples(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse values that were published as samples."""
    return [
        Error(
            f"{name} has the published sample value {sample!r}, which everybody knows.",
            hint="Set one of your own; 'isolane keys generate' makes encryption keys.",
            id=SAMPLE_VALUE,
        )
        for name, value in _values()
        if (sample := sample_in(name, value))
    ]


@register(Tags.security)
def check_keys(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse encryption keys that are not valid; their text is not repeated."""
    return [
        Error(
            f"ENCRYPTION_KEYS: key {position} is not 32 bytes in URL-safe base64.",
            hint=GENERATE,
            id=INVALID_KEY,
        )
        for position, key in enumerate(settings.ENCRYPTION_KEYS, start=1)
        if not is_valid_key(key)
    ]


@register(Tags.security, deploy=True)
def check_key_is_set(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse a deployment without an encryption key; a provisioner alone needs none."""
    if settings.ENCRYPTION_KEYS:
        return []
    return [
        Error(
            "ENCRYPTION_KEYS is empty: secrets and sensitive values cannot be stored.",
            hint=GENERATE,
            id=NO_KEY,
        )
    ]


@register(Tags.security)
def check_cache_server(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Refuse a run cache on the broker's server: runs would reach the broker."""
    if not settings.CACHE_URL or not settings.REDIS_URL:
        return []
    cache, broker = settings.CACHE_URL, settings.REDIS_URL
    if cache != broker and (server_of(cache) is None or server_of(cache) != server_of(broker)):
        return []
    return [
        Error(
            "ISOLANE_CACHE_URL is the server of REDIS_URL; runs may use a cache, never the broker.",
            hint="Name a server of its own.",
            id=CACHE_IS_BROKER,
        )
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
