"""Hashing passwords, which takes a processor for about 0.2 s each time, in threads of its own.

Timing: request-time. Model: sync; few threads hash, with low priority, and few requests wait for them, without a
database connection. Guarantee: at-most-once; one or two processors hash, never more than half. Failure: abort; who
finds the queue full is told to come back.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from foundation.errors import TooManyAttempts

# Together fewer than the four requests of strangers that web works on at once (a fifth of its connections): while
# some guess passwords, others must still see the login page, and new API keys be looked up.
AT_ONCE = min(2, max(1, (os.cpu_count() or 1) // 2))
WAITING = 1
RETRY_SECONDS = 2
NICENESS = 19
Result = TypeVar("Result")


class HashingQueue:
    """So many hash at once, so many wait, all others are refused."""

    def __init__(self, *, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._threads = ThreadPoolExecutor(at_once, "hashing", initializer=_give_way)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Be in the queue, or refused at once."""
        if not self._places.acquire(blocking=False):
            raise TooManyAttempts(RETRY_SECONDS)
        try:
            yield
        finally:
            self._places.release()

    def run(self, work: Callable[[], Result]) -> Result:
        """Do it in turn; waits for those before, who hold a place each."""
        return self._threads.submit(work).result()


def _give_way() -> None:
    """Let everybody else go first: a login may take longer, a request may not."""
    with contextlib.suppress(
        OSError, AttributeError
    ):  # where threads have no priority of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


QUEUE = HashingQueue()
