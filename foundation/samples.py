"""Sample values that were published, and so are no secrets. Pure."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

PASSWORD = "change-me"  # noqa: S105 - every password of the sample, and the start of its SECRET_KEY
ENCRYPTION_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def sample_in(variable: str, value: str) -> str:
    """Return the published value that this variable holds; empty if there is none."""
    look = _LOOKS.get(variable)
    return look(value) if look and value else ""


def _word(value: str) -> str:
    return PASSWORD if value.lower().startswith(PASSWORD) else ""


def _address(value: str) -> str:
    try:
        password = unquote(urlsplit(value).password or "")
    except ValueError:
        password = ""
    # libpq accepts other notations, too.
    return _word(password) or (PASSWORD if f"password={PASSWORD}" in value else "")


def _key_ring(value: str) -> str:
    return ENCRYPTION_KEY if ENCRYPTION_KEY in value else ""


_LOOKS: Mapping[str, Callable[[str], str]] = {
    "SECRET_KEY": _word,
    "FLOWER_PASSWORD": _word,
    "ENCRYPTION_KEYS": _key_ring,
    "DATABASE_URL": _address,
    "DATABASE_OWNER_URL": _address,
    "DATABASE_WORKER_URL": _address,
    "REDIS_URL": _address,
    "ISOLANE_CACHE_URL": _address,
}
