"""How much a check or an evaluation may do before it is given up: counted, so that it ends on every machine.

A unit is 10 ns on the machine that the prices were measured on (`python -m bench.checks`). A price may be wrong and a
machine slower or shared: where seconds are given, the thread's own CPU time is a second limit.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CHECK_WORK = 30_000_000  # for one check: 0.3 s
CHECK_SECONDS = 0.6  # of CPU, whatever the prices say; a busy core is slower
_STRIDE = 100_000  # units between two looks at the clock: a millisecond


class TooMuchWork(Exception):
    """It was given up."""


def _let_others_run() -> None:
    """Let go of Python's global lock; else a thread that waits for it loses 5 ms each time."""
    time.sleep(0)


class Work:
    """What is left to be done."""

    def __init__(
        self,
        limit: int,
        seconds: float | None = None,
        *,
        clock: Callable[[], float] = time.thread_time,
        rest: Callable[[], None] = _let_others_run,
    ) -> None:
        self._left = limit
        self._clock = clock
        self._rest = rest
        self._seconds = seconds
        self._until: float | None = None  # from the first look on
        self._look_at = max(limit - _STRIDE, 0)

    def spend(self, units: int) -> None:
        """Take from what is left, before it is done."""
        self._left -= units
        if self._left < self._look_at:
            self.look()

    def refuse_over(self, units: int) -> None:
        """Give up if something that cannot be interrupted may come to more than is left."""
        if units > self._left:
            raise TooMuchWork

    def look(self) -> None:
        """Let other threads run, and give up if the time is over."""
        if self._left < 0:
            raise TooMuchWork
        self._look_at = max(self._left - _STRIDE, 0)
        self._rest()
        if self._seconds is not None and self._is_late(self._seconds):
            self._left = -1
            raise TooMuchWork

    def _is_late(self, seconds: float) -> bool:
        now = self._clock()
        if self._until is None:
            self._until = now + seconds
        return now > self._until


def check_work() -> Work:
    """What one check may do."""
    return Work(CHECK_WORK, CHECK_SECONDS)


_CURRENT: ContextVar[Work | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def check_budget() -> Iterator[Work]:
    """What is spent within; a block inside another spends from the outer one's."""
    if outer := _CURRENT.get():
        yield outer
        return
    work = check_work()
    token = _CURRENT.set(work)
    try:
        yield work
    finally:
        _CURRENT.reset(token)
