"""Something a worker does again and again, whatever happens.

Timing: background-worker, in a thread with its own connection. Model: sync. Guarantee: at-least-once.
Failure: logged, and tried again a period later; a broken connection is replaced.
"""

import logging
import threading
from abc import abstractmethod

from django.db import Error as DatabaseError
from django.db import connection

PERIOD_SECONDS = 1.0
STOP_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Periodic(threading.Thread):
    """Runs `turn` until the worker stops."""

    period_seconds = PERIOD_SECONDS

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._stopping = threading.Event()

    @abstractmethod
    def turn(self) -> None:
        """What is done each time."""

    def failed(self) -> None:
        """What is done when a turn has failed."""

    def run(self) -> None:
        """Turn after turn, also while PostgreSQL or Redis is away."""
        while not self._stopping.wait(self.period_seconds):
            try:
                self.turn()
            except DatabaseError as error:
                reason = str(error).strip().partition("\n")[0]
                logger.warning(
                    "%s: the database: %s", self.name, reason, extra={"event": "TURN_FAILED"}
                )
                connection.close()
                self.failed()
            except Exception:
                logger.exception("%s failed", self.name, extra={"event": "TURN_FAILED"})
                self.failed()
        connection.close()

    def stop(self) -> None:
        """Stop after this turn."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=STOP_SECONDS)
