"""Turns at hashing passwords, which takes a processor for about 0.2 s each time.

Timing: request-time. Model: sync; a few requests wait for their turn, without a database connection. Guarantee: at most
half of the processors hash. Failure: abort; who finds the queue full is told to come back.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.core.errors import TooManyAttempts

AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
WAITING = 4
RETRY_SECONDS = 2


class HashingQueue:
    """So many hash at once, so many wait, all others are refused."""

    def __init__(self, *, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._turns = threading.BoundedSemaphore(at_once)

    @property
    def is_full(self) -> bool:
        """Whether a login that comes now would be refused, as far as one can tell."""
        if not self._places.acquire(blocking=False):
            return True
        self._places.release()
        return False

    @contextmanager
    def place(self) -> Iterator[None]:
        """Be in the queue, or refused at once."""
        if not self._places.acquire(blocking=False):
            raise TooManyAttempts(RETRY_SECONDS)
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hash now; waits for those before, who hold a place each."""
        with self._turns:
            yield


QUEUE = HashingQueue()
