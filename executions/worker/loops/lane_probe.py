"""Probe this worker's own lane by sending messages to itself.

A connection, a consumer or a pool of threads may hang while the lease is renewed as ever. What is placed on such a
worker would never begin.

Timing: background-worker, a probe every two seconds.
Model: sync; the consumer hands a probe to a thread of the pool, as it does with a link.
Guarantee: best-effort; one lost probe means nothing.
Failure: half a minute without a probe ends the worker, unless Redis does not answer.
"""

import logging
import threading
import time
from collections.abc import Callable

from kombu.exceptions import OperationalError

from executions.placement.chain import send_probe
from executions.worker.clocks import Clocks
from executions.worker.loops.periodic import Periodic

logger = logging.getLogger(__name__)


class LaneProbe:
    """The probes that this worker sent and received; safe from any thread."""

    def __init__(self, *, unsure: float, now: Callable[[], float] = time.monotonic) -> None:
        self._unsure = unsure
        self._now = now
        self._lock = threading.Lock()
        self._unanswered_since: float | None = (
            None  # the first probe sent since the last one received
        )
        self._broker_unavailable = False

    def sent(self) -> None:
        """Note that Redis has taken a probe."""
        with self._lock:
            self._broker_unavailable = False
            if self._unanswered_since is None:
                self._unanswered_since = self._now()

    def broker_unavailable(self) -> None:
        """Note that Redis does not answer: a missing probe says nothing of the lane then."""
        with self._lock:
            self._broker_unavailable, self._unanswered_since = True, None

    def received(self) -> None:
        """Note that a probe has come to a thread of the pool."""
        with self._lock:
            self._broker_unavailable, self._unanswered_since = False, None

    @property
    def unanswered_seconds(self) -> float:
        """Return for how long Redis has taken probes and none was received."""
        with self._lock:
            return 0.0 if self._unanswered_since is None else self._now() - self._unanswered_since

    @property
    def is_healthy(self) -> bool:
        """Say whether messages sent to the lane arrive."""
        return not self._broker_unavailable and self.unanswered_seconds < self._unsure


class LaneProbeLoop(Periodic):
    """Sends probes until the worker stops or finds its lane unreachable."""

    def __init__(
        self, probe: LaneProbe, lane: str, clocks: Clocks, *, on_unreachable: Callable[[], None]
    ) -> None:
        super().__init__("lane_probe", period=clocks.probe)
        self._probe = probe
        self._lane = lane
        self._limit = clocks.unreachable
        self._on_unreachable = on_unreachable
        self._is_unreachable = False

    def turn(self) -> None:
        """Send a probe; if none was received for too long, report the lane as unreachable, once."""
        if self._probe.unanswered_seconds >= self._limit and not self._is_unreachable:
            self._is_unreachable = True
            logger.error(
                "no probe comes back from the lane; ending to be restarted", extra={"event": "DEAF"}
            )
            self._on_unreachable()
        try:
            send_probe(self._lane)
        except OperationalError:
            self._probe.broker_unavailable()
        else:
            self._probe.sent()
