"""Limits on the work of a check or an evaluation: counted, so that it ends on every machine. Pure.

A unit is 10 ns on the machine that the prices were measured on (`python -m bench.validation_cost`). Since a price may
be wrong and a machine slower or shared, a clock brought by the caller is a second limit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CHECK_WORK = 30_000_000  # one check: 0.3 s
CHECK_SECONDS = 0.6  # likewise, by the clock; a busy core is slower
_STRIDE = 100_000  # units between two readings of the clock: a millisecond


class TooMuchWork(Exception):
    """The work exceeded its limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkClock:
    """A clock, and an action at each reading."""

    clock: Callable[[], float]  # seconds of the thread's own CPU time
    rest: Callable[[], None]  # lets other threads run


_WATCH: ContextVar[WorkClock | None] = ContextVar("_WATCH", default=None)


@contextmanager
def watched(watch: WorkClock) -> Iterator[None]:
    """Use this clock for all work that begins inside the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


class Work:
    """The remaining work of a check."""

    def __init__(self, limit: int, seconds: float | None = None) -> None:
        self._left = limit
        self._look_at = max(limit - _STRIDE, 0)
        self._seconds = seconds
        self._until: float | None = None  # set at the first reading
        self._watch = _WATCH.get()

    def spend(self, units: int) -> None:
        """Pay for work before it is done."""
        self._left -= units
        if self._left < self._look_at:
            self.look()

    def refuse_over(self, units: int) -> None:
        """Give up if an uninterruptible operation may need more than what is left."""
        if units > self._left:
            raise TooMuchWork

    def look(self) -> None:
        """Let other threads run, and give up if the work or the time is used up."""
        if self._left < 0:
            raise TooMuchWork
        self._look_at = max(self._left - _STRIDE, 0)
        if self._watch:
            self._watch.rest()
            if self._seconds is not None and self._is_late(self._watch.clock(), self._seconds):
                self._left = -1
                raise TooMuchWork

    def _is_late(self, now: float, seconds: float) -> bool:
        if self._until is None:
            self._until = now + seconds
        return now > self._until


def check_work() -> Work:
    """Return the limit of one check."""
    return Work(CHECK_WORK, CHECK_SECONDS)


_CURRENT: ContextVar[Work | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def check_budget() -> Iterator[Work]:
    """Yield the work of this block; a nested block shares that of the outer one."""
    if outer := _CURRENT.get():
        yield outer
        return
    work = check_work()
    token = _CURRENT.set(work)
    try:
        yield work
    finally:
        _CURRENT.reset(token)
