"""How much a check or an evaluation may do before it is given up: counted, so that it ends on every machine. Pure.

A unit is 10 ns on the machine where `python -m bench.validation_cost` measured the prices. A price may be wrong and a
machine slower or shared: where the caller brings a clock, it is a second limit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CHECK_WORK = 30_000_000  # for one check: 0.3 s
CHECK_SECONDS = 0.6  # likewise, by the clock; a busy core is slower
_STRIDE = 100_000  # units between two looks at the clock: a millisecond


class TooMuchWork(Exception):
    """It was given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkClock:
    """What is done with every look, and the clock that is looked at."""

    clock: Callable[[], float]  # seconds of the thread's own CPU time
    rest: Callable[[], None]  # lets other threads run


_WATCH: ContextVar[WorkClock | None] = ContextVar("_WATCH", default=None)


@contextmanager
def watched(watch: WorkClock) -> Iterator[None]:
    """All work that is begun within is watched."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


class Work:
    """What is left to be done."""

    def __init__(self, limit: int, seconds: float | None = None) -> None:
        self._left = limit
        self._look_at = max(limit - _STRIDE, 0)
        self._seconds = seconds
        self._until: float | None = None  # known from the first look on
        self._watch = _WATCH.get()

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
        """Let other threads run, and give up if the work or the time is over."""
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
