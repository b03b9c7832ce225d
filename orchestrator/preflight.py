"""Checks of the servers that the operator named, before anything is started on them.

Timing: in the caller, some seconds for a server that is away.
Model: sync.
Guarantee: nothing is changed on a server.
Failure: abort with one line that names the variable; nothing is tried twice.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

import psycopg
import redis
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping
from redis.backoff import NoBackoff
from redis.retry import Retry

from foundation.errors import IsolaneError
from orchestrator import env
from orchestrator.cache_url import VARIABLE as CACHE_URL
from orchestrator.cache_url import cache_url
from orchestrator.processes import WORKERS_DATABASE

MIN_POSTGRES = 14
MIN_REDIS = (6, 2)
CONNECT_SECONDS = 5


class ServerUnusable(IsolaneError):
    """A server does not answer or is too old; one line for a terminal."""

    code = "server_unusable"
    http_status = 503


def external_servers(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the servers that the operator named, checked; None if none is named."""
    names = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")
    optional = (WORKERS_DATABASE, CACHE_URL)
    given = {name: value for name in (*names, *optional) if (value := env.variable(environ, name))}
    if not given:
        return None
    for name in names:
        if name not in given:
            raise ImproperlyConfigured(
                f"{name} is not set, but {', '.join(given)} is: name all of {', '.join(names)}, "
                "or none to use the embedded servers."
            )
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL"):
        env.postgres_url(name, given[name])
    check_postgres(given["DATABASE_OWNER_URL"], "DATABASE_OWNER_URL")
    check_login(given["DATABASE_URL"], given["DATABASE_OWNER_URL"])
    if worker := env.worker_url(given.get(WORKERS_DATABASE, ""), web=given["DATABASE_URL"]):
        check_login(worker, given["DATABASE_OWNER_URL"], WORKERS_DATABASE)
    broker = env.redis_url(given["REDIS_URL"])
    check_redis(broker)
    if cache := cache_url(given.get(CACHE_URL, ""), broker=broker):
        check_cache(cache, broker)
    return given


def check_postgres(url: str, variable: str) -> None:
    """Refuse a PostgreSQL that is away or too old."""
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            version = connection.info.server_version // 10_000
    except (psycopg.Error, UnicodeError) as error:
        raise ServerUnusable(
            f"{variable}: PostgreSQL at {_address(url)} does not answer: {_cause(error)}"
        ) from None
    if version < MIN_POSTGRES:
        raise ServerUnusable(
            f"{variable}: PostgreSQL {version} is too old; use {MIN_POSTGRES} or newer."
        )


def check_login(url: str, owner_url: str, variable: str = "DATABASE_URL") -> None:
    """Refuse an address that cannot be used; the migration creates a login role that does not exist yet."""
    user = conninfo_to_dict(url).get("user")
    with psycopg.connect(owner_url, connect_timeout=CONNECT_SECONDS) as connection:
        found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [user]).fetchone()
    asked = make_conninfo(url, connect_timeout=CONNECT_SECONDS)
    if found is not None or PGconn.ping(asked.encode()) != Ping.OK:
        check_postgres(url, variable)


def _address(url: str) -> str:
    info = conninfo_to_dict(url)
    return f"{info.get('host') or 'the default host'}:{info.get('port') or 5432}"


def _cause(error: Exception) -> str:
    """Return the reason without the address, which libpq puts before it, and its advice in the lines below."""
    line = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]
    return " ".join(line.split()) or type(error).__name__


def check_redis(url: str, variable: str = "REDIS_URL") -> str:
    """Refuse a Redis or Valkey that is away or too old; return its run id."""
    try:
        with _redis(url) as client:
            found = dict(client.info("server"))
    except (redis.RedisError, ValueError, OSError) as error:
        parts = urlsplit(url)
        where = parts.netloc.rpartition("@")[2] if parts.hostname else parts.path
        raise ServerUnusable(
            f"{variable}: Redis at {where} does not answer: {str(error) or type(error).__name__}"
        ) from None
    # Valkey reports the version of Redis that it is compatible with under the same name.
    version = tuple(int(part) for part in str(found["redis_version"]).split(".")[:2])
    if version < MIN_REDIS:
        raise ServerUnusable(
            f"{variable}: Redis {found['redis_version']} is too old; use 6.2 or newer, or Valkey."
        )
    return str(found.get("run_id", ""))


def check_cache(url: str, broker: str) -> None:
    """Refuse a run cache that is the broker by another name, or that needs no password."""
    found = check_redis(url, CACHE_URL)
    if found and found == check_redis(broker):
        raise ServerUnusable(
            f"{CACHE_URL} leads to the server of REDIS_URL; runs may use a cache, never the broker: "
            "name a server of its own."
        )
    if _is_open(url):
        raise ServerUnusable(
            f"{CACHE_URL}: the server asks for no password, so every run would be its administrator; "
            "set one for its user 'default', or turn that user off."
        )


def _is_open(url: str) -> bool:
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    try:
        with _redis(bare) as stranger:
            return bool(stranger.ping())
    except redis.RedisError:
        return False


def _redis(url: str) -> "redis.Redis":
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=CONNECT_SECONDS,
        retry=Retry(NoBackoff(), 0),  # a refusal is an answer, too
    )
