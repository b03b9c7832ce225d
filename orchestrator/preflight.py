"""Checks of the servers we were pointed at, before anything is started on them."""

from urllib.parse import urlsplit

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

from orchestrator.core.errors import IsolaneError

MIN_POSTGRES = 14
MIN_REDIS = (6, 2)
CONNECT_SECONDS = 5


class ServerUnusable(IsolaneError):
    """A server does not answer or is too old; one line, fit for a terminal."""

    code = "server_unusable"
    http_status = 503


def check_postgres(url: str, variable: str) -> None:
    """Refuse a PostgreSQL that is away or older than we can use."""
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


def check_login(url: str, owner_url: str) -> None:
    """Refuse a DATABASE_URL that cannot be used; a login role that does not exist yet is made by the migration."""
    user = conninfo_to_dict(url).get("user")
    with psycopg.connect(owner_url, connect_timeout=CONNECT_SECONDS) as connection:
        found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [user]).fetchone()
    asked = make_conninfo(url, connect_timeout=CONNECT_SECONDS)
    if found is not None or PGconn.ping(asked.encode()) != Ping.OK:
        check_postgres(url, "DATABASE_URL")


def _address(url: str) -> str:
    info = conninfo_to_dict(url)
    return f"{info.get('host') or 'the default host'}:{info.get('port') or 5432}"


def _cause(error: Exception) -> str:
    """What went wrong; libpq names the address before it and gives advice in the lines below."""
    line = str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]
    return " ".join(line.split()) or type(error).__name__


def check_redis(url: str) -> None:
    """Refuse a Redis or Valkey that is away or older than we can use."""
    try:
        client = redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
        )
        with client:
            found = dict(client.info("server"))
    except (redis.RedisError, ValueError, OSError) as error:
        parts = urlsplit(url)
        where = parts.netloc.rpartition("@")[2] if parts.hostname else parts.path
        raise ServerUnusable(
            f"REDIS_URL: Redis at {where} does not answer: {str(error) or type(error).__name__}"
        ) from None
    # Valkey tells the version of Redis that it is compatible with under the same name.
    version = tuple(int(part) for part in str(found["redis_version"]).split(".")[:2])
    if version < MIN_REDIS:
        raise ServerUnusable(
            f"REDIS_URL: Redis {found['redis_version']} is too old; use 6.2 or newer, or Valkey."
        )
