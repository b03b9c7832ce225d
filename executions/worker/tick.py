"""The tick: admission, reaping and deletions, in every worker, one at a time.

Timing: background-worker, in a thread with its own connection: it goes on when all step threads are busy and when
Redis is away. Model: sync. Guarantee: at-least-once; each part may run twice. Failure: logged, tried again.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from executions.dispatch import admit_and_send
from executions.services.offboarding import advance_deletions
from executions.worker.machine import Machine
from executions.worker.reaper import reap

PERIOD_SECONDS = 1.0
TICK_LOCK = 7_231_003
logger = logging.getLogger(__name__)


class Tick(threading.Thread):
    """Runs until the worker stops."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(name="tick", daemon=True)
        self._machine = machine
        self._stopping = threading.Event()

    def run(self) -> None:
        """Once a second, in whichever worker gets the lock."""
        while not self._stopping.wait(PERIOD_SECONDS):
            try:
                self.turn()
            except DatabaseError:
                logger.warning(
                    "tick failed: the database does not answer", extra={"event": "TICK_FAILED"}
                )
                connection.close()
            except Exception:
                # One bad row must not stop admission for everybody.
                logger.exception("tick failed", extra={"event": "TICK_FAILED"})
        connection.close()

    def stop(self) -> None:
        """Stop after this turn."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=5)

    def turn(self) -> None:
        """Do what is due, unless another worker is at it."""
        with _lock() as held:
            if not held:
                return
            if self._machine.may_reap(settings.LEASE_SECONDS):
                reap()
            admit_and_send()
            advance_deletions()


@contextmanager
def _lock() -> Iterator[bool]:
    """A lock of the connection's session, so that it goes with the connection if this process dies."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [TICK_LOCK])
        held: bool = cursor.fetchone()[0]
    try:
        yield held
    finally:
        if held:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [TICK_LOCK])
