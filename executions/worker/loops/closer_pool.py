"""Threads that end placements for the lease loop, which must not wait.

Timing: background-worker; a close takes as long as its runtime and remote servers do.
Model: sync, a few threads that share connections.
Guarantee: at-least-once; a placement that was not ended is found again by the loop.
Failure: logged; a broken connection is replaced.
"""

import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import Error as DatabaseError
from django.db import connection

from tenants.scope import keep_connections

THREADS = 16  # a few that hang must not hold up the others
logger = logging.getLogger(__name__)


class CloserPool:
    """Takes closes from any thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="closer")

    def submit(self, work: Callable[[], None]) -> None:
        """Run it soon in another thread; its log lines carry the caller's ids."""
        self._threads.submit(contextvars.copy_context().run, _run, work)

    def stop(self) -> None:
        """Finish the closes under way; those that wait are left to the end of this boot."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def _run(work: Callable[[], None]) -> None:
    keep_connections()
    try:
        work()
    except DatabaseError as error:
        reason = str(error).strip().partition("\n")[0]
        logger.warning("not ended: the database: %s", reason, extra={"event": "NOT_ENDED"})
        connection.close()
    except Exception:
        logger.exception("not ended", extra={"event": "NOT_ENDED"})
