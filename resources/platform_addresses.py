"""Where the platform's own servers lie, web and Flower included, by its settings. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

LOCAL = "127.0.0.1"
WEB_PORT = 443
_WEB_PORTS = frozenset({80, WEB_PORT})
_POSTGRES_PORT = 5432
_REDIS_PORT = 6379


def platform_addresses(
    databases: Iterable[Mapping[str, Any]],
    redis_urls: Iterable[str],
    others: Iterable[tuple[str, int]] = (),
) -> frozenset[tuple[str, int]]:
    """Host and port of each; a server on a Unix socket may listen at its usual port of this machine, too."""
    found = {place for database in databases for place in _of_postgres(database)}
    found |= {_of_redis(url) for url in redis_urls if url}
    return frozenset(found | {(_host(host), port) for host, port in others})


def is_web(name: str, port: int, domain: str) -> bool:
    """Whether web answers there: at the platform's own host name and those below it, behind whatever proxy.

    By name alone: others may be served at the proxy's address, too.
    """
    below = name == domain or name.endswith(f".{domain}")
    return bool(domain) and below and port in _WEB_PORTS


def _of_postgres(database: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    # libpq takes lists: as many ports as hosts, or one for all; without a host it takes its Unix socket.
    said = (database.get("HOST"), database.get("OPTIONS", {}).get("hostaddr"))
    ports = str(database.get("PORT") or "").split(",")
    for hosts in [str(text) for text in said if text] or [""]:
        names = hosts.split(",")
        each = ports if len(ports) == len(names) else ports[:1] * len(names)
        for name, port in zip(names, each, strict=True):
            yield _host(name), int(port or _POSTGRES_PORT)


def _of_redis(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return _host(parts.hostname or ""), parts.port or _REDIS_PORT


def _host(name: str) -> str:
    return name.lower().rstrip(".") if name and "/" not in name else LOCAL
