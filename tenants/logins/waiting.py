"""Subjects that have to wait, kept in this process for a moment, so that refusing them again costs next to nothing."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from foundation.backoff import SECOND

MAX_KEPT = 10_000
KEPT_FOR = SECOND  # then the counts are asked again: the wait may have been taken back


class Waiting:
    """A bounded number of names; the oldest are dropped first."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, most: int = MAX_KEPT
    ) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, name: str, wait: int) -> None:
        """Remember that the name has to wait, if it has."""
        if wait <= 0:
            return
        now = self._now()
        with self._lock:
            self._until.pop(name, None)
            self._until[name] = now + wait, now + min(wait, KEPT_FOR)
            if len(self._until) > self._most:
                self._until.popitem(last=False)

    @property
    def is_empty(self) -> bool:
        """True if no name is kept; does not look at the clock."""
        return not self._until

    def left(self, name: str) -> int:
        """Return the remaining wait of the name, as far as it is known here."""
        until, kept_until = self._until.get(name, (0, 0))
        now = self._now()
        return until - now if now < kept_until else 0

    def _now(self) -> int:
        return int(self._clock() * SECOND)


WAITING = Waiting()
