"""The limit of checks at the same time: one of each tenant, and a few in all.

Timing: request-time; a thread waits for its turn for a bounded time, without a connection.
Model: sync, any thread.
Guarantee: a freed place goes to the tenant that has waited longest, so that no tenant takes all.
Failure: TooManyChecks, when no turn came in time.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from foundation.errors import TooManyChecks

# Checks are Python code: more of them at once would not end sooner, and would slow other requests down.
PLACES = 2
WAIT_SECONDS = 1.0
WAITING = 3  # of one tenant; each holds a thread of the web server


class WorkGate:
    """The places of one process."""

    def __init__(self, places: int = PLACES, wait_s: float = WAIT_SECONDS) -> None:
        self._free = places
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        # The waiting threads by tenant; tenants in the order of their turns.
        self._waiting: dict[str, deque[threading.Event]] = {}

    @contextmanager
    def place(self, tenant: str) -> Iterator[None]:
        """Hold a place until the block ends."""
        self._take(tenant)
        try:
            yield
        finally:
            self._leave(tenant)

    def _take(self, tenant: str) -> None:
        turn = threading.Event()
        with self._lock:
            if len(self._waiting.get(tenant, ())) >= WAITING:
                raise _too_many()
            self._waiting.setdefault(tenant, deque()).append(turn)
            self._give_turns()
        if turn.wait(self._wait_s):
            return
        with self._lock:
            if turn.is_set():
                return
            self._waiting[tenant].remove(turn)
            if not self._waiting[tenant]:
                del self._waiting[tenant]
        raise _too_many()

    def _leave(self, tenant: str) -> None:
        with self._lock:
            self._free += 1
            self._busy.discard(tenant)
            self._give_turns()

    def _give_turns(self) -> None:
        for tenant in list(self._waiting):
            if not self._free:
                return
            if tenant not in self._busy:
                self._give_turn(tenant)

    def _give_turn(self, tenant: str) -> None:
        queue = self._waiting.pop(tenant)
        self._free -= 1
        self._busy.add(tenant)
        queue.popleft().set()
        if queue:
            self._waiting[tenant] = queue  # behind the other tenants


def _too_many() -> TooManyChecks:
    return TooManyChecks(
        "Inputs and blueprints of this tenant are being checked, or too many of all tenants; send this again"
        " in a second, and fewer at once."
    )
