"""`python -m trials.chaos.worker NAME`: a worker with a wrong wall clock.

Timing: a long-running process of its own.
Model: sync; the clock is set before anything else is imported.
Guarantee: best-effort.
Failure: bubble; a wrong clock must not cause one.
"""

import ctypes
import os
import signal
import sys
import time
from datetime import datetime, timedelta

SKEW = "CHAOS_CLOCK_SKEW"  # seconds that the wall clock is ahead
PR_SET_PDEATHSIG = 1


def set_clock(seconds: float) -> None:
    """Shift the wall clock for all modules that are imported later; monotonic clocks stay right."""
    from django.utils import timezone  # noqa: PLC0415 - after the clock

    real_time, real_now = time.time, timezone.now

    def wrong_time() -> float:
        return real_time() + seconds

    def wrong_now() -> datetime:
        return real_now() + timedelta(seconds=seconds)

    time.time = wrong_time
    timezone.now = wrong_now


def main() -> None:
    """Set the clock and run an ordinary worker with task events; it ends with its parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    set_clock(float(os.environ.get(SKEW, "0")))
    from celery.__main__ import main as celery  # noqa: PLC0415 - after the clock

    sys.argv = ["celery", "-A", "orchestrator", "worker", "-E", "-n", sys.argv[1]]
    celery()


if __name__ == "__main__":
    main()
