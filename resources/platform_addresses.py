"""The addresses of the platform's own servers, web and Flower included, by its settings. Pure."""

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
    """Return the host and port of each; a server on a Unix socket may also listen at its usual local port."""
    found = {place for database in databases for place in _of_postgres(database)}
    found |= {_of_redis(url) for url in redis_urls if url}
    return frozenset(found | {(_host(host), port) for host, port in others})


def is_web(name: str, port: int, domain: str) -> bool:
    """Say whether web answers at this name: the platform's own host name or a subdomain, behind any proxy.

    By name alone: the proxy's address may serve others, too.
    """
    below = name == domain or name.endswith(f".{domain}")
    return bool(domain) and below and port in _WEB_PORTS


def _of_postgres(database: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    # libpq takes lists: as many ports as hosts, or one for all; without a host it takes its Unix socket.
    configured = (database.get("HOST"), database.get("OPTIONS", {}).get("hostaddr"))
    ports = str(database.get("PORT") or "").split(",")
    for hosts in [str(text) for text in configured if text] or [""]:
        names = hosts.split(",")
        each = ports if len(ports) == len(names) else ports[:1] * len(names)
        for name, port in zip(names, each, strict=True):
            yield _host(name), int(port or _POSTGRES_PORT)


def _of_redis(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return _host(parts.hostname or ""), parts.port or _REDIS_PORT


def _host(name: str) -> str:
    return name.lower().rstrip(".") if name and "/" not in name else LOCAL
