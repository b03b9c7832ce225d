"""Threads that end placements for the worker's loop, which must not wait.

Timing: background-worker; each ending takes as long as its runtime and far sides do. Model: sync, a few threads with a
connection each. Guarantee: at-least-once; what was not ended is found again by the loop.
Failure: logged; a broken connection is replaced.
"""

import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import Error as DatabaseError
from django.db import connection

THREADS = 16  # a few that hang must not hold up the others
logger = logging.getLogger(__name__)


class CloserPool:
    """Takes work from any thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ending")

    def ask(self, work: Callable[[], None]) -> None:
        """Have it done soon; what it logs is about the same run as what the caller does."""
        self._threads.submit(contextvars.copy_context().run, _done, work)

    def stop(self) -> None:
        """Finish what is under way; what waits is left to whoever ends this boot."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def _done(work: Callable[[], None]) -> None:
    try:
        work()
    except DatabaseError as error:
        reason = str(error).strip().partition("\n")[0]
        logger.warning("not ended: the database: %s", reason, extra={"event": "NOT_ENDED"})
        connection.close()
    except Exception:
        logger.exception("not ended", extra={"event": "NOT_ENDED"})
