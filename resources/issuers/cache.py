"""The issuer of run cache users: one user per placement, which can use that placement's keys and no others.

Timing: while a placement opens, closes or is swept.
Model: sync, on a connection of its own each time, never retried.
Guarantee: idempotent; one command creates the user; it is gone, with its connections, before its keys.
Failure: IssueError; what may be left is revoked again later. A restarted cache has neither users nor keys.
"""

import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from isolane.protocol import Grant
from resources.issuers.base import REMOTE_SECONDS, Credential, IssueError, Issuer, ResourceRequest

USER = "cache.user"
KEYS = "cache.keys"
# Commands on named keys, and those of a connecting client. Key patterns do not restrict commands that scan keys.
COMMANDS = (
    "get", "set", "del", "exists", "incrby", "expire", "pttl", "ping", "client|setname", "client|id", "hello", "auth",
)  # fmt: skip
_CONNECT_SECONDS = 2.0
_BATCH = 1000
_PORT = 6379


class CacheIssuer(Issuer):
    """Administers the instance at ISOLANE_CACHE_URL, which is not the broker."""

    type: ClassVar[str] = "cache"

    def __init__(self, url: str | None = None) -> None:
        self._url = url

    def plan(self, request: ResourceRequest) -> Sequence[Credential]:
        """Return the keys, then the user: revoked in reverse, no key is written after the eviction."""
        self._address()  # raises before anything is committed that could not be revoked
        placement = f"exec:{request.execution_id}:{request.epoch}:{request.definition}"
        return (
            Credential(kind=KEYS, remote_id=f"{placement}:", data={}),
            Credential(kind=USER, remote_id=placement, data={}),
        )

    def issue(self, request: ResourceRequest, credentials: Sequence[Credential]) -> Grant:
        """Create the user; there are no keys before it writes some."""
        names = {credential.kind: credential.remote_id for credential in credentials}
        password = secrets.token_urlsafe(32)
        url = self._address()
        ca = _authorities(url)
        with _administrator(url) as client:
            client.acl_setuser(
                names[USER],
                reset=True,
                enabled=True,
                hashed_passwords=[f"+{sha256(password.encode()).hexdigest()}"],
                keys=[f"{names[KEYS]}*"],
                reset_channels=True,
                categories=["-@all"],
                commands=[f"+{command}" for command in COMMANDS],
            )
        parts = urlsplit(url)
        place = {
            "host": parts.hostname,
            "port": parts.port or _PORT,
            "tls": parts.scheme == "rediss",
            "ca": ca,
            "username": names[USER],
            "prefix": names[KEYS],
        }
        return request.grant(
            config={**request.config, **place},
            secrets={"password": password},
            address=_found(parts.hostname or "", parts.port or _PORT),
        )

    def revoke(self, credential: Credential) -> None:
        """Delete the user, which ends its connections, or evict the keys."""
        with _administrator(self._address()) as client:
            if credential.kind == USER:
                client.acl_deluser(credential.remote_id)
            else:
                _evict(client, credential.remote_id)

    def _address(self) -> str:
        url: str = settings.CACHE_URL if self._url is None else self._url
        if not url:
            raise IssueError("there is no run cache; the operator sets ISOLANE_CACHE_URL to one.")
        if not url.startswith(("redis://", "rediss://")):
            raise IssueError(
                "ISOLANE_CACHE_URL is not a TCP address, which runs need; use redis://:password@host:port."
            )
        return url


@contextmanager
def _administrator(url: str) -> Iterator["redis.Redis"]:
    """Connect for one task; errors of redis-py are raised as IssueError."""
    client = redis.Redis.from_url(
        url,
        protocol=2,
        client_name="isolane-worker",
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=REMOTE_SECONDS - _CONNECT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        with client:
            yield client
    except (redis.RedisError, OSError) as error:
        where = urlsplit(url).netloc.rpartition("@")[2]
        raise IssueError(
            f"the run cache at {where}: {str(error) or type(error).__name__}"
        ) from None


def _authorities(url: str) -> str:
    """Return the certificates that the URL's option names a file of; empty for the public ones."""
    (name,) = parse_qs(urlsplit(url).query).get("ssl_ca_certs", [""])[:1]
    try:
        return Path(name).read_text("ascii") if name else ""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a file of PEM"
        raise IssueError(
            f"ISOLANE_CACHE_URL: ssl_ca_certs={name} cannot be read: {reason}"
        ) from None


def _found(host: str, port: int) -> str:
    """Return the address of the run cache, for runs that cannot look it up."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise IssueError(f"the run cache at {host}:{port}: {error}") from None
    return str(found[0][4][0])


def _evict(client: "redis.Redis", prefix: str) -> None:
    """Delete all keys with this prefix; an unfinished scan is restarted by the next try, with fewer keys."""
    deadline = time.monotonic() + REMOTE_SECONDS - _CONNECT_SECONDS
    cursor = -1
    while cursor:
        cursor, keys = client.scan(max(cursor, 0), match=f"{prefix}*", count=_BATCH)
        if keys:
            client.unlink(*keys)
        if cursor and time.monotonic() > deadline:
            raise IssueError(f"the keys {prefix}* could not be evicted in time.")
