"""A loop of a worker: the same work again and again, whatever happens.

Timing: background-worker, in a thread with its own connection.
Model: sync.
Guarantee: at-least-once.
Failure: logged, and tried again a period later; a broken connection is replaced.
"""

import logging
import threading
from abc import abstractmethod

from django.db import Error as DatabaseError
from django.db import connection

from tenants.scope import give_back_connection

STOP_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Periodic(threading.Thread):
    """Runs `turn` every `period` seconds until the worker stops."""

    def __init__(self, name: str, *, period: float) -> None:
        super().__init__(name=name, daemon=True)
        self._period = period
        self._stopping = threading.Event()

    @abstractmethod
    def turn(self) -> None:
        """Do the work once."""

    def failed(self) -> None:
        """Act on a turn that has failed; nothing by default."""

    def run(self) -> None:
        """Run turn after turn, also while PostgreSQL or Redis is away."""
        while not self._stopping.wait(self._period):
            try:
                self.turn()
                give_back_connection()
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
