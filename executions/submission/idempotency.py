"""Committed idempotency keys, cached in Redis in front of PostgreSQL, whose constraint decides.

Timing: request-time.
Model: sync.
Guarantee: best-effort; a key may be forgotten at any moment, so an answer is only a hint.
Failure: fails open; if Redis is away, slow or answers nonsense, a key is NEW, never an error.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

TTL_SECONDS = 24 * 3600
MAX_SECONDS = 0.2  # the longest that a caller waits for Redis
REST_SECONDS = 5.0  # after a failure, without a request to Redis and without a log line

# Compared on the server: it takes one round trip, and no digest leaves the server.
LUA = """
local found = redis.call('GET', KEYS[1])
if not found then return 'new' end
if found == ARGV[1] then return 'duplicate' end
return 'conflict'
"""
SHA = hashlib.sha1(
    LUA.encode(), usedforsecurity=False
).hexdigest()  # the name that EVALSHA knows it by

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)


class Seen(StrEnum):
    """The answers to a look-up of a key."""

    NEW = "new"  # not known
    DUPLICATE = "duplicate"  # committed with the same digest
    CONFLICT = "conflict"  # committed with another digest


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A key from a caller; it counts for one blueprint of one tenant."""

    tenant_id: int
    blueprint: str
    text: str

    @property
    def name(self) -> str:
        """Return its name in Redis, a hash that does not show the caller's text."""
        hashed = hashlib.sha256(json.dumps([self.blueprint, self.text]).encode()).hexdigest()
        return f"isolane:idempotency:{self.tenant_id}:{hashed}"


def check(key: Key, digest: str) -> Seen:
    """Look the key up; a key that is not NEW has a row, which has the answer."""
    if not settings.REDIS_URL:
        return Seen.NEW
    return _keys(settings.REDIS_URL).check(key.name, digest)


def remember(key: Key, digest: str) -> None:
    """Cache a key, after its row is committed."""
    if settings.REDIS_URL:
        _keys(settings.REDIS_URL).remember(key.name, digest)


class CommittedKeys:
    """The keys in one Redis, which is left alone for a while after a failure."""

    def __init__(self, client: redis.Redis, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._rests_until = float("-inf")

    def check(self, name: str, digest: str) -> Seen:
        """Compare the digest with the one cached under the name."""
        return self._bounded(lambda: self._compare(name, digest), Seen.NEW)

    def remember(self, name: str, digest: str) -> None:
        """Cache the digest under the name; it replaces an older one, since a dropped run frees its key."""
        self._bounded(lambda: self._client.set(name, digest, ex=TTL_SECONDS), None)

    def _compare(self, name: str, digest: str) -> Seen:
        try:
            found = self._client.evalsha(SHA, 1, name, digest)
        except NoScriptError:  # after a start, a failover or SCRIPT FLUSH
            found = self._client.eval(LUA, 1, name, digest)
        return Seen(found.decode() if isinstance(found, bytes) else found)

    def _bounded(self, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        began = self._clock()
        if began < self._rests_until:
            return otherwise
        try:
            answer = ask()
        except (redis.RedisError, OSError, ValueError) as error:
            self._rest(type(error).__name__)
            return otherwise
        if self._clock() - began > MAX_SECONDS:
            self._rest("slow")
        return answer

    def _rest(self, reason: str) -> None:
        self._rests_until = self._clock() + REST_SECONDS
        logger.warning(
            "idempotency keys are not looked up for %g s (%s); the database decides",
            REST_SECONDS,
            reason,
            extra={"event": "IDEMPOTENCY_OPEN"},
        )


@cache
def _keys(url: str) -> CommittedKeys:
    """Return the one client of the process, made on first use."""
    half = MAX_SECONDS / 2  # for connecting, then for the answer
    limits: dict[str, Any] = {"socket_connect_timeout": half, "socket_timeout": half}
    client = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2, **limits)
    return CommittedKeys(client)
