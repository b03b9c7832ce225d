"""The address of the run cache: over TCP, behind a password, and never the broker's server. Pure."""

from urllib.parse import SplitResult, parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured

from foundation.redis_address import host_and_port, server_of

VARIABLE = "ISOLANE_CACHE_URL"
_EXAMPLE = "use redis://:password@host:port, or rediss:// for TLS"


def cache_url(value: str, *, broker: str) -> str:
    """Return the value if runs may use that server; empty if none is configured."""
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        address = host_and_port(parts)
    except ValueError:  # its text may hold the password
        raise ImproperlyConfigured(f"{VARIABLE} is not an address; {_EXAMPLE}.") from None
    if refusal := _refusal(parts):
        raise ImproperlyConfigured(f"{VARIABLE} {refusal}")
    if address == server_of(broker):
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
