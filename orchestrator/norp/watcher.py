"""Watches a far side while probes run: a connection is there for a moment only, and must be seen in it.

Timing: request-time, as long as its block. Model: sync; a thread looks some twenty times a second.
Guarantee: idempotent; nothing is changed there. Failure: what the thread meets is raised by the next question.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from foundation.errors import Unavailable
from orchestrator.norp.observations import ObservedConnection
from orchestrator.norp.observed_servers import FarSide, Link, Look, Opening, names

LOOK_SECONDS = 0.04  # between two looks
PATIENCE_SECONDS = (
    3.0  # a server notices by itself, a moment later, that a client has closed its socket
)


class ConnectionWatcher:
    """Remembers every connection, user and role that was ever seen."""

    def __init__(self, far_side: FarSide) -> None:
        self._far_side = far_side
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._links: dict[str, tuple[Link, float, float]] = {}
        self._issued: set[str] = set()
        self._error: Unavailable | None = None

    def connections(self, execution_id: UUID) -> tuple[ObservedConnection, ...]:
        """Those that were seen of this run."""
        with self._lock:
            seen = [found for found in self._links.values() if _is_of(found[0], execution_id)]
        return tuple(
            ObservedConnection(
                id=link.id, mark=link.mark, user=link.user, seen_from=first, seen_until=last
            )
            for link, first, last in seen
        )

    def issued(self, execution_id: UUID) -> tuple[str, ...]:
        """The users and roles that were seen of this run."""
        with self._lock:
            return tuple(sorted(name for name in self._issued if names(name, execution_id)))

    def left(self, execution_id: UUID) -> tuple[str, ...]:
        """What is there now of this run beside connections."""
        look = self._look()
        with self._lock:
            entries = self._far_side.entries(execution_id)
        users = [name for name in look.issued if names(name, execution_id)]
        return tuple(sorted({*users, *entries}))

    def gone_s(self, execution_id: UUID) -> float | None:
        """Wait until no connection of this run is there; None if one stays."""
        began = time.monotonic()
        while any(_is_of(link, execution_id) for link in self._look().links):
            if time.monotonic() - began > PATIENCE_SECONDS:
                return None
            time.sleep(LOOK_SECONDS)
        return round(time.monotonic() - began, 3)

    def check(self) -> None:
        """Raise what the thread met."""
        if self._error is not None:
            raise self._error

    def watch(self) -> None:
        """Look until it is stopped."""
        try:
            while not self._stopping.wait(LOOK_SECONDS):
                self._look()
        except Unavailable as error:
            self._error = error

    def stop(self) -> None:
        """Have the thread end."""
        self._stopping.set()

    def _look(self) -> Look:
        self.check()
        with self._lock:
            look = self._far_side.look()
            now = time.monotonic()
            for link in look.links:
                first = self._links[link.id][1] if link.id in self._links else now
                self._links[link.id] = (link, first, now)
            self._issued.update(look.issued)
        return look


@contextmanager
def watching(opening: Opening) -> Iterator[ConnectionWatcher]:
    """Watch a far side until the block ends; a first look tells whether it is there at all."""
    with opening as far_side:
        watcher = ConnectionWatcher(far_side)
        far_side.look()
        thread = threading.Thread(target=watcher.watch, name="norp-watcher", daemon=True)
        thread.start()
        try:
            yield watcher
        finally:
            watcher.stop()
            thread.join()


def _is_of(link: Link, execution_id: UUID) -> bool:
    return names(link.mark, execution_id) or names(link.user, execution_id)
