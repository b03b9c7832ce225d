"""The pool of a worker's runners: busy ones, idle ones that wait for their tenant's next run, and retired ones.

A start takes far longer than a short step, so idle runners are kept, as many as fit into the given RAM
(`resources.runtimes.idle`). A dead runner that was never given back is found when its slot is needed, and reported.

Timing: taking one is quick; giving one back that is not reused waits for its end.
Model: any thread; at most `size` runners are busy.
Guarantee: a runner that is given back frees its slot, whatever goes wrong meanwhile.
Failure: a runner that could not be disposed of is retired, and tried again by the sweep.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from resources.runtimes.base import PoolExhaustedError, RuntimeStartError
from resources.runtimes.faults import reported
from resources.runtimes.idle import IdleRunners
from resources.runtimes.shared_runner import SharedRunner, end_descendants_of

# What steps leave in Python's own state adds up; a new runner costs milliseconds.
RUNS_MAX = 1000
GROWTH_MAX_MB = 256
logger = logging.getLogger(__name__)


class RunnerPool:
    """All runners of one backend."""

    def __init__(
        self, *, level: str, size: int, idle_mb: float, begin: Callable[[], SharedRunner]
    ) -> None:
        self._level = level
        self._size = size
        self._begin_one = begin
        self._lock = threading.Lock()
        self._starting = 0  # slots of runners that are just being forked
        self._is_stopped = False
        self.idle = IdleRunners(most_mb=idle_mb)
        self.busy: set[SharedRunner] = set()
        self.retired: set[SharedRunner] = set()  # no longer used, and perhaps not gone yet

    def take(self, tenant_id: int) -> SharedRunner:
        """Return an idle runner of this tenant, or a new one, or raise RuntimeStartError."""
        ended: list[SharedRunner] = []
        try:
            with self._lock:
                child = self._idle_of(tenant_id, ended)
                if child is None:
                    self._take_slot()
                else:
                    self.busy.add(child)
            return child or self._begin()
        finally:
            self._dispose(ended)

    def give_back(self, child: SharedRunner, tenant_id: int, *, clean: bool) -> None:
        """Take a runner back for its tenant's next run, or end it; end others if too many are idle."""
        reusable, ended = False, [child]
        try:
            with reported("the folder of a runner was not emptied"):
                reusable = clean and self.is_reusable(child)
            if not reusable:
                child.kill()
        finally:
            with self._lock:
                self.busy.discard(child)
                if reusable:
                    self.idle.add(child, tenant_id, now=time.monotonic())
                    ended = self.idle.take_surplus()
                self.retired.update(ended)
        self._dispose(ended)

    def is_reusable(self, child: SharedRunner) -> bool:
        """Empty its folder; true if the next run finds nothing of the last one, and it has not served for too long."""
        return not _is_worn(child) and child.wipe()

    def sweep(self) -> None:
        """Dispose of the retired runners again, and of those that no run has used for long."""
        with self._lock:
            left = [*self.retired, *self.idle.take_unused(time.monotonic())]
        self._dispose(left)

    def stop(self) -> None:
        """End all runners; busy ones are disposed of by their users."""
        with self._lock:
            self._is_stopped = True
            idle, busy = self.idle.take_all(), list(self.busy)
        self._dispose(idle)
        for child in busy:
            with reported("a runner was not ended"):
                child.kill()

    def _dispose(self, children: Sequence[SharedRunner]) -> None:
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

    def _idle_of(self, tenant_id: int, ended: list[SharedRunner]) -> SharedRunner | None:
        while (child := self.idle.take(tenant_id)) is not None:
            if not child.ended():
                return child
            ended.append(child)
        return None

    def _take_slot(self) -> None:
        if len(self.busy) + self._starting >= self._size:
            self._free_dead()
        if len(self.busy) + self._starting >= self._size:
            raise PoolExhaustedError(f"all {self._size} runtimes of level {self._level} are in use")
        self._starting += 1

    def _begin(self) -> SharedRunner:
        """Fork a runner in the slot that was taken, without the lock: a zygote may have to start first."""
        child: SharedRunner | None = None
        try:
            child = self._begin_with_room()
        finally:
            with self._lock:
                self._starting -= 1
                if child is not None:
                    self.busy.add(child)
        if self._is_stopped:  # `stop` did not find it
            child.kill()
        return child

    def _begin_with_room(self) -> SharedRunner:
        """Fork a runner; if that fails, once more without the idle ones, which may have taken what it needs."""
        try:
            return self._begin_one()
        except RuntimeStartError:
            with self._lock:
                idle = self.idle.take_all()
            if not idle:
                raise
            self._dispose(idle)
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


def _is_worn(child: SharedRunner) -> bool:
    return child.runs >= RUNS_MAX or child.grown_mb > GROWTH_MAX_MB
