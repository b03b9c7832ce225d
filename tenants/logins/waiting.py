"""Subjects that have to wait, kept in this process for a moment, so that refusing them again costs next to nothing."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from foundation.backoff import SECOND

MAX_KEPT = 10_000
KEPT_FOR = SECOND  # then the counts are asked again, which may have taken the wait back


class Waiting:
    """At most so many names, the ones noted longest ago go first."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, most: int = MAX_KEPT
    ) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, name: str, wait: int) -> None:
        """Take down that the name has to wait, if it has."""
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
        """Whether nobody was noted lately, as far as one can tell without a look at the time."""
        return not self._until

    def left(self, name: str) -> int:
        """How long the name has to wait, as far as is known here."""
        until, kept_until = self._until.get(name, (0, 0))
        now = self._now()
        return until - now if now < kept_until else 0

    def _now(self) -> int:
        return int(self._clock() * SECOND)


WAITING = Waiting()
