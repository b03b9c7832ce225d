"""Failures counted by all web processes together, in Redis; while it is away, by each process for itself.

Timing: request-time.
Model: sync.
Guarantee: best-effort; counts may be lost with Redis, but there is always a limit.
Failure: continue; if Redis is away, slow or broken, the process uses its own counts.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError
from redis.retry import Retry

from foundation.backoff import SECOND, Counted, CountedSubject
from foundation.failure_counts import FailureCounts

PREFIX = "isolane:login:"
MAX_SECONDS = 0.2  # the longest delay of a caller by a Redis that does not answer
REST_SECONDS = 5.0  # the pause in asking Redis after a failure

# A key holds "<failures> <end of the wait>", or 0 for no wait: a caller whose clock is behind must not wait either.
# Each comes with a table of waits, the memory and the longest wait. The time is the caller's; a wait is never longer
# than the longest, however far two clocks differ. Also in scripts, web's user may call only few commands
# (orchestrator.broker_users).
READ = """
local function read(key)
  local failures, ends = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
  return tonumber(failures or 0), tonumber(ends or 0)
end
"""
COUNT = (
    READ
    + """
local now, wait = tonumber(ARGV[1]), 0
local waits, backoffs, counted = {}, {}, {}
for i, key in ipairs(KEYS) do
  backoffs[i] = cjson.decode(ARGV[i + 1])
  local _, ends = read(key)
  waits[i] = math.max(0, math.min(ends - now, backoffs[i].longest))
  wait = math.max(wait, waits[i])
end
if wait > 0 then return {waits, counted} end
for i, key in ipairs(KEYS) do
  local failures, table = read(key) + 1, backoffs[i].waits
  local added = table[math.min(failures, #table)]
  local ends = added > 0 and now + added or 0
  redis.call('SET', key, string.format('%d %.0f', failures, ends), 'PX', backoffs[i].memory)
  counted[i] = failures
end
return {waits, counted}
"""
)
GIVE_BACK = (
    READ
    + """
local failures = read(KEYS[1])
if failures > 0 then
  redis.call('SET', KEYS[1], string.format('%d 0', failures - 1), 'KEEPTTL')
end
"""
)

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)


class SharedCounts:
    """FailureCounts in one Redis, with counts of its own for the time that Redis is left alone."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._rests_until = float("-inf")
        self._own = FailureCounts(clock=clock)
        self._client = client

    def count(self, subjects: Sequence[CountedSubject]) -> Counted:
        """Count one failure of each subject, unless one of them has to wait."""
        names = [PREFIX + subject.name for subject in subjects]
        now = int(self._clock() * SECOND)

        def ask() -> Counted:
            waits, failures = self._run(COUNT, names, [now, *map(_table, subjects)])
            return Counted(waits=tuple(map(int, waits)), failures=tuple(map(int, failures)))

        return self._bounded(ask, lambda: self._own.count(subjects))

    def give_back(self, name: str) -> None:
        """Take back one failure that was counted in advance, and its wait."""
        self._own.give_back(name)
        self._bounded(lambda: self._run(GIVE_BACK, [PREFIX + name], []), lambda: None)

    def forget(self, name: str) -> None:
        """Take back all failures."""
        self._own.forget(name)
        self._bounded(lambda: self._client.delete(PREFIX + name), lambda: None)

    def _run(self, script: str, names: list[str], arguments: list[Any]) -> Any:
        try:
            return self._client.evalsha(_sha(script), len(names), *names, *arguments)
        except NoScriptError:  # after a start, a failover or SCRIPT FLUSH
            return self._client.eval(script, len(names), *names, *arguments)

    def _bounded(self, ask: Callable[[], Answer], otherwise: Callable[[], Answer]) -> Answer:
        began = self._monotonic()
        if began < self._rests_until:
            return otherwise()
        try:
            answer = ask()
        except (redis.RedisError, OSError, ValueError, TypeError) as error:
            self._rest(type(error).__name__)
            return otherwise()
        if self._monotonic() - began > MAX_SECONDS:
            self._rest("slow")
        return answer

    def _rest(self, reason: str) -> None:
        self._rests_until = self._monotonic() + REST_SECONDS
        logger.warning(
            "failed logins are counted by this process alone for %g s (%s)",
            REST_SECONDS,
            reason,
            extra={"event": "LOGIN_COUNTS_OWN"},
        )


def counts() -> SharedCounts | FailureCounts:
    """Return the counts of this process's platform."""
    return _counts(settings.REDIS_URL)


@cache
def _counts(url: str) -> SharedCounts | FailureCounts:
    if not url:
        return FailureCounts()
    half = MAX_SECONDS / 2  # one half for connecting, one for the answer
    limits: dict[str, Any] = {"socket_connect_timeout": half, "socket_timeout": half}
    return SharedCounts(
        redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2, **limits)
    )


@cache
def _sha(script: str) -> str:
    """Return the name by which EVALSHA knows a script."""
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


def _table(subject: CountedSubject) -> str:
    backoff = subject.backoff
    return json.dumps(
        {"waits": backoff.waits, "memory": backoff.memory, "longest": backoff.longest}
    )
