"""The pool of a worker's runners: busy ones, idle ones that wait for their tenant's next run, and retired ones.

A start takes far longer than a short step, so idle runners are kept; one too many ends those that have been idle for
longest. A dead runner that was never given back is found when its slot is needed, and reported.

Timing: taking one is quick; giving one back that is not reused waits for its end.
Model: any thread; at most `size` runners are busy, and three times as many exist in all.
Guarantee: a runner that is given back frees its slot, whatever goes wrong meanwhile.
Failure: a runner that could not be disposed of is retired, and tried again by the sweep.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from resources.runtimes.base import PoolExhaustedError
from resources.runtimes.child import RunnerProcess, end_descendants_of
from resources.runtimes.faults import reported

# Runners for each that may be busy: of too many some are ended at once, since that costs little more than ending one.
_KEPT, _MOST = 2, 3
# What steps leave in Python's own state adds up; a new runner costs milliseconds.
RUNS_MAX = 1000
GROWTH_MAX_MB = 256
logger = logging.getLogger(__name__)


class Idle(NamedTuple):
    """An idle runner, and its tenant."""

    tenant_id: int
    child: RunnerProcess


class RunnerPool:
    """All runners of one backend."""

    def __init__(self, *, level: str, size: int, begin: Callable[[], RunnerProcess]) -> None:
        self._level = level
        self._size = size
        self._begin_one = begin
        self._lock = threading.Lock()
        self.idle: list[Idle] = []  # the longest idle first
        self.busy: set[RunnerProcess] = set()
        self.retired: set[RunnerProcess] = set()  # no longer used, and perhaps not gone yet

    def take(self, tenant_id: int) -> RunnerProcess:
        """Return an idle runner of this tenant, or a new one, or raise RuntimeStartError."""
        ended: list[RunnerProcess] = []
        try:
            with self._lock:
                child = self._idle_of(tenant_id, ended) or self._begin(ended)
                self.busy.add(child)
        finally:
            self._dispose(ended)
        return child

    def give_back(self, child: RunnerProcess, tenant_id: int, *, clean: bool) -> None:
        """Take a runner back for its tenant's next run, or end it."""
        reusable = False
        try:
            with reported("the folder of a runner was not emptied"):
                reusable = clean and self.is_reusable(child)
            if not reusable:
                child.kill()
        finally:
            with self._lock:
                self.busy.discard(child)
                if reusable:
                    self.idle.append(Idle(tenant_id, child))
                else:
                    self.retired.add(child)
        if not reusable:
            self._dispose([child])

    def is_reusable(self, child: RunnerProcess) -> bool:
        """Empty its folder; true if the next run finds nothing of the last one, and it has not served for too long."""
        return not _is_worn(child) and child.wipe()

    def end_retired(self) -> None:
        """Dispose of the retired runners again."""
        with self._lock:
            left = list(self.retired)
        self._dispose(left)

    def stop(self) -> None:
        """End all runners; busy ones are disposed of by their users."""
        with self._lock:
            idle, self.idle = self.idle, []
            busy = list(self.busy)
        self._dispose([child for _, child in idle])
        for child in busy:
            with reported("a runner was not ended"):
                child.kill()

    def _dispose(self, children: Sequence[RunnerProcess]) -> None:
        """Dispose of runners, without the lock, since it may take a moment."""
        with self._lock:
            self.retired.update(children)
        if len(children) > 1:
            end_descendants_of(children)
        for child in children:
            with reported("a runner was not disposed of"):
                if child.dispose():
                    with self._lock:
                        self.retired.discard(child)

    def _idle_of(self, tenant_id: int, ended: list[RunnerProcess]) -> RunnerProcess | None:
        for idle in reversed([idle for idle in self.idle if idle.tenant_id == tenant_id]):
            self.idle.remove(idle)
            if not idle.child.ended():
                return idle.child
            ended.append(idle.child)
        return None

    def _begin(self, ended: list[RunnerProcess]) -> RunnerProcess:
        if len(self.busy) >= self._size:
            self._free_dead()
        if len(self.busy) >= self._size:
            raise PoolExhaustedError(f"all {self._size} runtimes of level {self._level} are in use")
        if len(self.busy) + len(self.idle) >= _MOST * self._size:
            while self.idle and len(self.busy) + len(self.idle) >= _KEPT * self._size:
                ended.append(self.idle.pop(0).child)
        return self._begin_one()

    def _free_dead(self) -> None:
        """Free the slots of dead runners that were not given back, which is a fault of the platform."""
        dead = {child for child in self.busy if child.ended()}
        if not dead:
            return
        extra = {"event": "RUNTIMES_FORGOTTEN"}
        logger.error("%d dead runtimes were not given back", len(dead), extra=extra)
        self.busy -= dead
        self.retired |= dead  # for the sweep: by then their streams are no longer used


def _is_worn(child: RunnerProcess) -> bool:
    return child.runs >= RUNS_MAX or child.growth_mb() > GROWTH_MAX_MB
