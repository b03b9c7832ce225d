"""The thread that gives free slots away when runs of this worker have ended.

Timing: background-worker, in a thread with its own connection. Model: sync. Guarantee: at-least-once; what is asked for
while it is at work is done right after, and many asks at once are one. Failure: logged; the tick admits, too.
"""

import logging
import threading

from django.db import connection

from executions.placement.dispatch import admit_and_send

STOP_SECONDS = 5.0
logger = logging.getLogger(__name__)


class AdmissionLoop(threading.Thread):
    """Links only ask: they have better things to do, and the scope of their own connection stays their tenant's."""

    def __init__(self) -> None:
        super().__init__(name="admission", daemon=True)
        self._asked = threading.Event()
        self._stopping = False

    def ask(self) -> None:
        """A slot has become free."""
        self._asked.set()

    def run(self) -> None:
        """Admit whenever somebody has asked, until the worker stops."""
        while self._asked.wait() and not self._stopping:
            self._asked.clear()
            try:
                admit_and_send()
            except Exception:
                logger.exception("not admitted", extra={"event": "NOT_ADMITTED"})
                connection.close()
        connection.close()

    def stop(self) -> None:
        """Stop after what is under way."""
        self._stopping = True
        self._asked.set()
        if self.is_alive():
            self.join(timeout=STOP_SECONDS)
