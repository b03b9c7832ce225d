"""The watcher of a remote server while probes run: a connection is open for a moment only, and must be seen then.

Timing: request-time, as long as its block.
Model: sync; a thread takes some twenty snapshots a second.
Guarantee: idempotent; nothing is changed on the server.
Failure: an error of the thread is raised by the next call.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from foundation.errors import Unavailable
from orchestrator.norp.observations import ObservedConnection
from orchestrator.norp.observed_servers import (
    ObservedServer,
    OpenConnection,
    ServerContext,
    ServerSnapshot,
    is_named_after,
)

SNAPSHOT_SECONDS = 0.04  # between two snapshots
# A server notices by itself, a moment later, that a client has closed its socket.
PATIENCE_SECONDS = 3.0


class ConnectionWatcher:
    """Remembers every connection, user and role that was ever seen."""

    def __init__(self, server: ObservedServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: dict[str, tuple[OpenConnection, float, float]] = {}
        self._credentials: set[str] = set()
        self._error: Unavailable | None = None

    def connections(self, execution_id: UUID) -> tuple[ObservedConnection, ...]:
        """Return the connections of this run that were seen."""
        with self._lock:
            seen = [found for found in self._connections.values() if _is_of(found[0], execution_id)]
        return tuple(
            ObservedConnection(
                id=one.id, tag=one.tag, user=one.user, seen_from=first, seen_until=last
            )
            for one, first, last in seen
        )

    def credentials(self, execution_id: UUID) -> tuple[str, ...]:
        """Return the users and roles of this run that were seen."""
        with self._lock:
            found = [name for name in self._credentials if is_named_after(name, execution_id)]
        return tuple(sorted(found))

    def left(self, execution_id: UUID) -> tuple[str, ...]:
        """Return what the server has of this run now, beside connections."""
        snapshot = self._snapshot()
        with self._lock:
            keys = self._server.keys_of(execution_id)
        users = [name for name in snapshot.credentials if is_named_after(name, execution_id)]
        return tuple(sorted({*users, *keys}))

    def gone_s(self, execution_id: UUID) -> float | None:
        """Wait until this run has no connection; return how long that took, None if one stays."""
        began = time.monotonic()
        while any(_is_of(one, execution_id) for one in self._snapshot().connections):
            if time.monotonic() - began > PATIENCE_SECONDS:
                return None
            time.sleep(SNAPSHOT_SECONDS)
        return round(time.monotonic() - began, 3)

    def check(self) -> None:
        """Raise the error of the thread, if there was one."""
        if self._error is not None:
            raise self._error

    def watch(self) -> None:
        """Take snapshots until it is stopped."""
        try:
            while not self._stopping.wait(SNAPSHOT_SECONDS):
                self._snapshot()
        except Unavailable as error:
            self._error = error

    def stop(self) -> None:
        """Let the thread end."""
        self._stopping.set()

    def _snapshot(self) -> ServerSnapshot:
        self.check()
        with self._lock:
            snapshot = self._server.snapshot()
            now = time.monotonic()
            for one in snapshot.connections:
                first = self._connections[one.id][1] if one.id in self._connections else now
                self._connections[one.id] = (one, first, now)
            self._credentials.update(snapshot.credentials)
        return snapshot


@contextmanager
def watching(context: ServerContext) -> Iterator[ConnectionWatcher]:
    """Watch a server until the block ends; a first snapshot shows whether it is there at all."""
    with context as server:
        watcher = ConnectionWatcher(server)
        server.snapshot()
        thread = threading.Thread(target=watcher.watch, name="norp-watcher", daemon=True)
        thread.start()
        try:
            yield watcher
        finally:
            watcher.stop()
            thread.join()


def _is_of(connection: OpenConnection, execution_id: UUID) -> bool:
    return is_named_after(connection.tag, execution_id) or is_named_after(
        connection.user, execution_id
    )
