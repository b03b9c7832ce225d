"""The address of the run cache: over TCP, behind a password, and never the broker's server. Pure."""

from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured

VARIABLE = "ISOLANE_CACHE_URL"
DEFAULT_PORT = 6379
_EXAMPLE = "use redis://:password@host:port, or rediss:// for TLS"


def cache_url(value: str, *, broker: str) -> str:
    """Return the value if runs may use that server; empty if there is none."""
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        address = _address(parts)
    except ValueError:  # its text may hold the password
        raise ImproperlyConfigured(f"{VARIABLE} is not an address; {_EXAMPLE}.") from None
    if refusal := _refusal(parts):
        raise ImproperlyConfigured(f"{VARIABLE} {refusal}")
    if address == _address_of(broker):
        raise ImproperlyConfigured(
            f"{VARIABLE} is the server of REDIS_URL ({parts.hostname}:{address[1]}); runs may use a cache, "
            "never the broker: name a server of its own."
        )
    return value


def _refusal(parts: SplitResult) -> str:
    if parts.scheme in {"unix", "redis+socket"}:
        return f"is a Unix socket, but runs reach the cache over TCP; {_EXAMPLE}."
    if parts.scheme not in {"redis", "rediss"}:
        return f"starts with {parts.scheme!r}; {_EXAMPLE}."
    if not parts.hostname:
        return f"names no host; {_EXAMPLE}."
    if not parts.password:
        return f"has no password: every run would be the server's administrator; {_EXAMPLE}."
    # Users of runs may not change the database, so their keys are in the first.
    if parts.path not in {"", "/", "/0"} or parse_qs(parts.query).get("db", ["0"]) != ["0"]:
        return "names a database other than 0; leave it out."
    return ""


def _address_of(url: str) -> tuple[str, int] | None:
    """Return host and port; None for a Unix socket, which no TCP address equals."""
    try:
        parts = urlsplit(url)
        return None if parts.scheme == "unix" else _address(parts)
    except ValueError:
        return None


def _address(parts: SplitResult) -> tuple[str, int]:
    return _host(parts.hostname or ""), DEFAULT_PORT if parts.port is None else parts.port


def _host(name: str) -> str:
    """Return one form for all names of this machine, and for all spellings of an address."""
    name = name.rstrip(".").lower()
    try:
        address = ip_address(name)
    except ValueError:
        return name or "localhost"
    address = getattr(address, "ipv4_mapped", None) or address
    return "localhost" if address.is_loopback or address.is_unspecified else str(address)
