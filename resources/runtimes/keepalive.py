"""The time until which runtimes may live, and the moments at which it ran out.

Timing: none of its own.
Model: any thread.
Guarantee: best-effort; it remembers the last lapse only.
Failure: none.
"""

import math
import threading
import time


class KeepaliveTerm:
    """Renewed with every renewal of the lease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = math.inf  # no keepalive yet
        self._lapsed_at = -math.inf  # when one last came too late

    @property
    def until(self) -> float:
        """Return the time (monotonic) until which runtimes may live."""
        return self._until

    def renew(self, until: float) -> None:
        """Let runtimes live until then."""
        with self._lock:
            now = time.monotonic()
            if now >= self._until:
                self._lapsed_at = now
            self._until = until

    def lapsed_since(self, at: float) -> bool:
        """Say whether it has run out since then: a runtime of that time was ended for it."""
        with self._lock:
            return time.monotonic() >= self._until or self._lapsed_at >= at
