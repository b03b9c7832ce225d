"""The thread that gives free slots away when runs of this worker have ended.

Timing: background-worker, in a thread that shares connections with links.
Model: sync.
Guarantee: at-least-once; requests during an admission are served by one more, right after it.
Failure: logged; the tick admits, too.
"""

import logging
import threading

from django.db import connection

from executions.placement.dispatch import admit_and_send
from tenants.scope import keep_connections

STOP_SECONDS = 5.0
logger = logging.getLogger(__name__)


class AdmissionLoop(threading.Thread):
    """Admits on request of links: they need not wait, and the scope of their own connection stays their tenant's."""

    def __init__(self) -> None:
        super().__init__(name="admission", daemon=True)
        self._requested = threading.Event()
        self._stopping = False

    def request(self) -> None:
        """Request an admission: a slot has become free."""
        self._requested.set()

    def run(self) -> None:
        """Admit on every request, until the worker stops."""
        keep_connections()
        while self._requested.wait() and not self._stopping:
            self._requested.clear()
            try:
                admit_and_send()
            except Exception:
                logger.exception("not admitted", extra={"event": "NOT_ADMITTED"})
                connection.close()
        connection.close()

    def stop(self) -> None:
        """Stop after the admission under way."""
        self._stopping = True
        self._requested.set()
        if self.is_alive():
            self.join(timeout=STOP_SECONDS)
