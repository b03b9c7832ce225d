"""The platform's PostgreSQL and Redis, each to be stopped and started again while everything else goes on.

Timing: stopping takes part of a second, starting about one. Model: sync, main thread: the kernel ends a child with the
thread that started it. Guarantee: what it started ends with it. Failure: bubble; a server that does not start is named.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import redis

from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor


class Server:
    """One of them."""

    def __init__(self, child: ServerProcess, supervisor: Supervisor) -> None:
        self._child = child
        self._supervisor = supervisor
        self.outages: list[tuple[float, float]] = []  # from and to, by the monotonic clock
        self._away_since: float | None = None

    def start(self) -> None:
        """Start it, the first time or again, and wait until it answers; no error if it runs."""
        if self._supervisor.pids:
            return
        self._supervisor.start(self._child)
        if self._away_since is not None:
            self.outages.append((self._away_since, time.monotonic()))
            self._away_since = None

    def stop(self) -> None:
        """Stop it as an operator does."""
        self._away_since = time.monotonic()
        self._supervisor.stop_all()

    def was_away(self, since: float) -> bool:
        """Whether it was away at any time since then."""
        return self._away_since is not None or any(end > since for _, end in self.outages)


@dataclass(kw_only=True)
class Servers:
    """Both of them, and who knows their addresses."""

    embedded: EmbeddedServers
    postgres: Server = field(init=False)
    valkey: Server = field(init=False)

    def __post_init__(self) -> None:
        logs = self.embedded.paths.logs
        self.postgres = Server(self.embedded.postgres.child(), Supervisor(logs))
        self.valkey = Server(self.embedded.valkey.child(), Supervisor(logs))

    def start(self) -> None:
        """Start those that do not run."""
        self.postgres.start()
        self.valkey.start()

    def stop(self) -> None:
        """Stop them both."""
        self.valkey.stop()
        self.postgres.stop()

    def flush(self, lanes: Sequence[str], seconds: float) -> int:
        """Empty Redis, and for a while take what comes into these lanes; returns how many messages these were.

        A worker that waits for a message has it at once, so a single FLUSHALL hardly ever meets one.
        """
        taken, until = 0, time.monotonic() + seconds
        with contextlib.suppress(redis.ConnectionError), self.client() as client:
            client.flushall()
            while lanes and (left := until - time.monotonic()) > 0:
                taken += client.brpop(list(lanes), timeout=max(left, 0.01)) is not None
        return taken

    def lanes(self) -> list[str]:
        """The names of the lanes that hold a message."""
        with self.client() as client:
            return sorted(map(str, client.scan_iter(match="lane.*", count=1000)))

    def client(self) -> "redis.Redis":
        """A client of its own for one look."""
        return redis.Redis.from_url(self.embedded.redis_url, decode_responses=True)
