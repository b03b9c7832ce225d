"""Failures counted in this process, for a limited number of subjects; the oldest are dropped first."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foundation.backoff import SECOND, Counted, CountedSubject

MAX_SUBJECTS = 10_000


@dataclass(slots=True)
class _Failures:
    number: int
    wait_until: int
    forget_at: int


class FailureCounts:
    """Count failures before the outcome is known, so that concurrent attempts count like consecutive ones."""

    def __init__(self, *, clock: Callable[[], float] = time.time, most: int = MAX_SUBJECTS) -> None:
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[str, _Failures] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, subjects: Sequence[CountedSubject]) -> Counted:
        """Count one failure of each subject, unless one of them must wait."""
        with self._lock:
            now = self._now()
            waits = tuple(self._wait(subject, now) for subject in subjects)
            if any(waits):
                return Counted(waits=waits, failures=())
            return Counted(waits=waits, failures=tuple(self._add(each, now) for each in subjects))

    def wait(self, subject: CountedSubject) -> int:
        """Return the wait of a subject."""
        with self._lock:
            return self._wait(subject, self._now())

    def give_back(self, name: str) -> None:
        """Take back one failure that was counted in advance, and its wait."""
        with self._lock:
            if kept := self._kept.get(name):
                kept.number, kept.wait_until = max(0, kept.number - 1), 0

    def forget(self, name: str) -> None:
        """Take back all failures."""
        with self._lock:
            self._kept.pop(name, None)

    def _wait(self, subject: CountedSubject, now: int) -> int:
        kept = self._kept.get(subject.name)
        if kept is None or kept.forget_at <= now:
            return 0
        left = max(0, kept.wait_until - now)
        return min(left, subject.backoff.longest)  # also after the clock was set back

    def _add(self, subject: CountedSubject, now: int) -> int:
        kept = self._kept.pop(subject.name, None)
        before = kept.number if kept and kept.forget_at > now else 0
        wait = subject.backoff.wait_after(before + 1)
        self._kept[subject.name] = _Failures(
            number=before + 1,
            wait_until=now + wait if wait else 0,
            forget_at=now + subject.backoff.memory,
        )
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return before + 1

    def _now(self) -> int:
        return int(self._clock() * SECOND)
