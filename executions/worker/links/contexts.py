"""The registry of this worker's open contexts, and of the links that are in its threads.

Timing: background-worker.
Model: sync, used from all pool threads and the worker's loops.
Guarantee: a context is opened once and closed once, whatever the order in which links end.
Failure: none of its own; a context whose close failed is put back, and the loop closes it again.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from executions.transitions.claim import Claim
from executions.worker.links.context import OpenContext
from resources.placement import Placement, PlacementKey


class Contexts:
    """All open contexts of this worker; every method is safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[PlacementKey, OpenContext] = {}
        self._in_flight: Counter[PlacementKey] = Counter()
        self._claiming: Counter[PlacementKey] = Counter()
        self._idle_since: dict[PlacementKey, float] = {}

    # --- every link, claimed or not, and every close
    def link_begins(self, key: PlacementKey) -> None:
        """Note that a thread works on this placement."""
        with self._lock:
            self._in_flight[key] += 1

    def link_ends(self, key: PlacementKey) -> None:
        """Note that the thread has left it."""
        with self._lock:
            self._in_flight[key] -= 1
            if not self._in_flight[key]:
                del self._in_flight[key]
                self._idle_since[key] = time.monotonic()

    def idle_seconds(self, key: PlacementKey) -> float:
        """Return for how long no thread has worked on this placement, from the first time that this is asked."""
        with self._lock:
            if key in self._in_flight:
                return 0.0
            now = time.monotonic()
            return now - self._idle_since.setdefault(key, now)

    def reset_idle(self, key: PlacementKey) -> None:
        """Count the idle time anew, since something was done about it."""
        with self._lock:
            self._idle_since[key] = time.monotonic()

    def any_in_flight(self) -> bool:
        """Say whether any thread works on any placement."""
        with self._lock:
            return bool(self._in_flight)

    def forget(self, held: set[PlacementKey]) -> None:
        """Drop the idle times of placements that are over: those that are not held."""
        with self._lock:
            for key in self._idle_since.keys() - held:
                del self._idle_since[key]

    # --- links that were claimed
    @contextmanager
    def claiming(self, key: PlacementKey) -> Iterator[None]:
        """Count a link as one at work while it claims its step and joins its context."""
        with self._lock:
            self._claiming[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._claiming[key] -= 1
                if not self._claiming[key]:
                    del self._claiming[key]

    def join(self, placement: Placement, new: Callable[[], OpenContext]) -> OpenContext:
        """Count a link in, into the placement's context or a new one. The claim lets one link at a time come here."""
        context = self.get(placement.key) or new()
        with self._lock:
            self._open[placement.key] = context
            context.count_in()
        return context

    def join_ahead(self, key: PlacementKey, path: str) -> tuple[OpenContext, Claim] | None:
        """Count a link in whose step was claimed with the checkpoint before it; one link takes that claim."""
        with self._lock:
            context = self._open.get(key)
            claim = context.count_in_ahead(path) if context else None
        return (context, claim) if context and claim else None

    def leave(self, context: OpenContext) -> bool:
        """Count a link out; true if the context is over, and it is now the caller's to close."""
        with self._lock:
            context.count_out()
            return self._take(context)

    # --- the end of a context
    def take(self, context: OpenContext) -> bool:
        """Take a context that is over out of the registry; true if it is now the caller's to close."""
        with self._lock:
            return self._take(context)

    def abandon(self, context: OpenContext) -> bool:
        """Lose a context in which no body is at work; true if it is now the caller's to tear down.

        No link gets into it any more.
        """
        with self._lock:
            if context.working or context.key in self._claiming:
                return False
            context.lose()
            return self._open.pop(context.key, None) is not None

    def put_back(self, context: OpenContext) -> None:
        """Keep a context whose close was not written: the loop tries it again."""
        with self._lock:
            self._open[context.key] = context

    # --- looking
    def get(self, key: PlacementKey) -> OpenContext | None:
        """Return the context of a placement, if it is open here."""
        with self._lock:
            return self._open.get(key)

    def all(self) -> list[OpenContext]:
        """Return the contexts that are open now."""
        with self._lock:
            return list(self._open.values())

    def _take(self, context: OpenContext) -> bool:
        return context.is_over and self._open.pop(context.key, None) is not None
