"""Probe this worker's own lane by sending messages to itself.

A connection, a consumer or a pool of threads may hang while the lease is renewed as ever. What is placed on such a
worker would never begin.

Timing: background-worker, a probe every two seconds. Model: sync; the consumer hands a probe to a thread of the pool,
as it does with a link. Guarantee: best-effort; one lost probe means nothing.
Failure: while Redis does not answer nothing is known of the lane. Half a minute without a probe ends the worker.
"""

import logging
import threading
import time
from collections.abc import Callable

from kombu.exceptions import OperationalError

from executions.placement.chain import send_probe
from executions.placement.dispatch import bounded_connection
from executions.worker.loops.periodic import Periodic

PERIOD_SECONDS = 2.0
UNSURE_SECONDS = 5.0  # without an echo, from which on nothing more is placed here
DEAF_SECONDS = 30.0
logger = logging.getLogger(__name__)


class LaneProbe:
    """When this worker called, and when it heard itself; safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting_since: float | None = None  # the first probe since the last echo
        self._is_away = False

    def called(self) -> None:
        """Redis has taken a probe."""
        with self._lock:
            self._is_away = False
            if self._waiting_since is None:
                self._waiting_since = self._clock()

    def is_away(self) -> None:
        """Redis does not answer, so it is not for the lane that nothing is heard."""
        with self._lock:
            self._is_away, self._waiting_since = True, None

    def heard(self) -> None:
        """An echo has come to a thread of the pool."""
        with self._lock:
            self._is_away, self._waiting_since = False, None

    @property
    def silent_seconds(self) -> float:
        """For how long Redis has taken calls and none came back."""
        with self._lock:
            return 0.0 if self._waiting_since is None else self._clock() - self._waiting_since

    @property
    def is_sure(self) -> bool:
        """Whether what is sent to the lane arrives."""
        return not self._is_away and self.silent_seconds < UNSURE_SECONDS


class LaneProbeLoop(Periodic):
    """Calls, until the worker stops or finds that it is deaf."""

    period_seconds = PERIOD_SECONDS

    def __init__(self, echo: LaneProbe, lane: str, *, on_deaf: Callable[[], None]) -> None:
        super().__init__("echo")
        self._echo = echo
        self._lane = lane
        self._on_deaf = on_deaf
        self._is_deaf = False

    def turn(self) -> None:
        """Call; if nothing was heard for too long, say so once."""
        if self._echo.silent_seconds >= DEAF_SECONDS and not self._is_deaf:
            self._is_deaf = True
            logger.error("the lane does not echo; ending to be restarted", extra={"event": "DEAF"})
            self._on_deaf()
        try:
            with bounded_connection() as connection:
                send_probe(self._lane, connection=connection, retry=False)
        except OperationalError:
            self._echo.is_away()
        else:
            self._echo.called()
