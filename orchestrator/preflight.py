"""Checks of the servers we were pointed at, before anything is started on them."""

from urllib.parse import urlsplit

import psycopg
import redis

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
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise ServerUnusable(f"{variable}: PostgreSQL does not answer: {reason}") from None
    if version < MIN_POSTGRES:
        raise ServerUnusable(
            f"{variable}: PostgreSQL {version} is too old; use {MIN_POSTGRES} or newer."
        )


def check_redis(url: str) -> None:
    """Refuse a Redis or Valkey that is away or older than we can use."""
    try:
        client = redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
        )
        with client:
            found = dict(client.info("server"))
    except (redis.RedisError, ValueError, OSError) as error:
        where = urlsplit(url).hostname or urlsplit(url).path
        raise ServerUnusable(
            f"REDIS_URL: Redis at {where} does not answer: {str(error) or type(error).__name__}"
        ) from None
    # Valkey tells the version of Redis that it is compatible with under the same name.
    version = tuple(int(part) for part in str(found["redis_version"]).split(".")[:2])
    if version < MIN_REDIS:
        raise ServerUnusable(
            f"REDIS_URL: Redis {found['redis_version']} is too old; use 6.2 or newer, or Valkey."
        )
