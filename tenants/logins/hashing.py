"""Hashing passwords in threads of its own; each hash takes a processor for about 0.2 s.

Timing: request-time.
Model: sync; few threads hash, at low priority, and few requests wait, without a database connection.
Guarantee: at-most-once; one or two processors hash, never more than half.
Failure: abort; a request that finds the queue full is refused with a time to retry.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from foundation.errors import TooManyAttempts

# Together fewer than the four requests of unknown callers that web works on at once (a fifth of its connections): while
# some callers guess passwords, others must still get the login page, and new API keys must be looked up.
AT_ONCE = min(2, max(1, (os.cpu_count() or 1) // 2))
WAITING = 1
RETRY_SECONDS = 2
NICENESS = 19
Result = TypeVar("Result")


class HashingQueue:
    """A number of hashes at once, a number that wait; all others are refused."""

    def __init__(self, *, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._threads = ThreadPoolExecutor(at_once, "hashing", initializer=_give_way)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Take a place in the queue, or refuse at once."""
        if not self._places.acquire(blocking=False):
            raise TooManyAttempts(RETRY_SECONDS)
        try:
            yield
        finally:
            self._places.release()

    def run(self, work: Callable[[], Result]) -> Result:
        """Run the work after those before it, each of which holds a place."""
        return self._threads.submit(work).result()


def _give_way() -> None:
    """Lower the thread's priority: a login may take longer, a request may not."""
    with contextlib.suppress(
        OSError, AttributeError
    ):  # where threads have no priority of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


QUEUE = HashingQueue()
