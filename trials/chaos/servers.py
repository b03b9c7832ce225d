"""The platform's PostgreSQL and Redis; each can be stopped and restarted alone.

Timing: stopping takes part of a second, starting about one.
Model: sync, main thread: the kernel ends a child with the thread that started it.
Guarantee: the servers end with this process.
Failure: bubble; a server that does not start is named.
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
    """One server and its outages."""

    def __init__(self, child: ServerProcess, supervisor: Supervisor) -> None:
        self._child = child
        self._supervisor = supervisor
        self.outages: list[tuple[float, float]] = []  # from and to, by the monotonic clock
        self._down_since: float | None = None

    def start(self) -> None:
        """Start the server and wait until it answers; do nothing if it runs."""
        if self._supervisor.pids:
            return
        self._supervisor.start(self._child)
        if self._down_since is not None:
            self.outages.append((self._down_since, time.monotonic()))
            self._down_since = None

    def stop(self) -> None:
        """Stop the server as an operator does."""
        self._down_since = time.monotonic()
        self._supervisor.stop_all()

    def was_down(self, since: float) -> bool:
        """Return True if the server was down at any time since then."""
        return self._down_since is not None or any(end > since for _, end in self.outages)


@dataclass(kw_only=True)
class Servers:
    """Both servers."""

    embedded: EmbeddedServers
    postgres: Server = field(init=False)
    valkey: Server = field(init=False)

    def __post_init__(self) -> None:
        logs = self.embedded.paths.logs
        self.postgres = Server(self.embedded.postgres.child(), Supervisor(logs))
        self.valkey = Server(self.embedded.valkey.child(), Supervisor(logs))

    def start(self) -> None:
        """Start the servers that do not run."""
        self.postgres.start()
        self.valkey.start()

    def stop(self) -> None:
        """Stop both servers."""
        self.valkey.stop()
        self.postgres.stop()

    def flush(self, lanes: Sequence[str], seconds: float) -> int:
        """Empty Redis, then take the messages of these lanes for a while; return how many there were.

        A waiting worker takes a message at once, so FLUSHALL alone would hardly ever lose one.
        """
        taken, until = 0, time.monotonic() + seconds
        with contextlib.suppress(redis.ConnectionError), self.client() as client:
            client.flushall()
            while lanes and (left := until - time.monotonic()) > 0:
                taken += client.brpop(list(lanes), timeout=max(left, 0.01)) is not None
        return taken

    def lanes(self) -> list[str]:
        """Return the names of the lanes with a message."""
        with self.client() as client:
            return sorted(map(str, client.scan_iter(match="lane.*", count=1000)))

    def client(self) -> "redis.Redis":
        """Return a new client."""
        return redis.Redis.from_url(self.embedded.redis_url, decode_responses=True)
