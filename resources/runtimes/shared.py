"""The level `shared`: long-lived runners, one execution at a time.

Timing: a start takes an idle runner or begins a new one; its first `open` waits for its imports.
Model: a pool per backend, used from any thread: at most `size` runners at work, and twice as many
in all, since a start takes far longer than a short step. One more ends the one idle for longest.
Guarantee: a runner is used again only after a clean teardown, with all handles said to be closed and
an empty folder, and only for the tenant that it was begun for: what a step changed in Python's own
state stays with that tenant.
Failure: a runner that was killed, died or left something behind is ended, and its place is free, whatever goes wrong
meanwhile; what could not be taken down then is tried again by the sweep.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from isolane.protocol import (
    Catalogue,
    Close,
    Closed,
    Describe,
    Grant,
    Open,
    Ready,
    Resource,
    Run,
)
from isolane.results import StepResult
from resources.runtimes.base import (
    Availability,
    OnFrame,
    OnResource,
    Placement,
    PoolExhaustedError,
    Runtime,
    RuntimeBackend,
    RuntimeStartError,
    ignore,
)
from resources.runtimes.child import Child
from resources.runtimes.faults import reported
from resources.runtimes.supervision import Supervision
from resources.runtimes.sweeping import FolderSweep
from resources.runtimes.watchdog import Watchdog

_KEPT = 2  # runners for each that may be at work
_START_TIMEOUT = 30.0  # seconds for a runner to import its packages and answer
_SEND_TIMEOUT = 5.0  # seconds for a runner that waits for frames to take one
_FIRST_SWEEP_SECONDS = 2.0  # a worker's start does not wait for longer
_FAULT = "the teardown went wrong; the worker's log says why"
logger = logging.getLogger(__name__)


class _Idle(NamedTuple):
    tenant_number: int
    child: Child


class SharedBackend(RuntimeBackend):
    """A pool of runners of the worker's own user."""

    def __init__(
        self,
        *,
        level: str,
        size: int,
        packages: Sequence[str] = (),
        tasks: Sequence[str] = (),
        paths: Sequence[str | Path] = (),
    ) -> None:
        super().__init__(level=level)
        self._size = size
        self._packages = packages
        self._tasks = tasks
        self._paths = paths
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []  # the longest idle first
        self._busy: set[Child] = set()
        self._ending: set[Child] = set()  # out of the pool, and perhaps not gone yet
        self._watchdog = Watchdog()
        self._folders = FolderSweep()
        self._folders.turn(_FIRST_SWEEP_SECONDS)

    def availability(self) -> Availability:
        """Say whether processes can be supervised safely here."""
        if hasattr(os, "waitid"):
            return Availability(ok=True)
        return Availability(ok=False, reason="this Python has no os.waitid")

    def describe(self) -> Catalogue:
        """Ask a new runner what it can run."""
        child = self._spawn()
        try:
            return child.ask(Describe(), Catalogue, _START_TIMEOUT)
        finally:
            child.dispose()

    def start(
        self,
        placement: Placement,
        *,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or begin one."""
        child = self._runner_for(placement.tenant_number)
        return SharedRuntime(self, child, placement, grants, on_resource)

    def keepalive(self, *, until: float) -> None:
        """Tell the watchdog."""
        self._watchdog.keepalive(until)

    def sweep(self) -> None:
        """End what is left of runners: of this worker's own, and of those that no living worker holds."""
        with self._lock:
            ending = list(self._ending)
        self._dispose(ending)
        self._folders.turn()

    def stop(self) -> None:
        """End all runners; those in use are disposed of by their users."""
        with self._lock:
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        self._dispose([child for _, child in idle])
        for child in busy:
            with reported("a runner was not ended"):
                child.kill()
        with reported("the watchdog was not ended"):
            self._watchdog.stop()

    def give_back(self, child: Child, tenant_number: int, *, clean: bool) -> None:
        """Take a runner back into the pool for its tenant's next run, or end it."""
        reusable = False
        try:
            with reported("the folder of a runner was not emptied"):
                reusable = clean and child.wipe()
            if not reusable:
                child.kill()
        finally:
            with self._lock:
                self._busy.discard(child)
                if reusable:
                    self._idle.append(_Idle(tenant_number, child))
                else:
                    self._ending.add(child)
        if not reusable:
            self._dispose([child])

    def _dispose(self, children: Sequence[Child]) -> None:
        """End runners that are out of the pool; without the lock, since it may take a moment. The sweep tries again."""
        with self._lock:
            self._ending.update(children)
        for child in children:
            with reported("a runner was not disposed of"):
                if child.dispose():
                    with self._lock:
                        self._ending.discard(child)

    def _runner_for(self, tenant_number: int) -> Child:
        retired: list[Child] = []
        try:
            with self._lock:
                child = self._take(tenant_number, retired) or self._begin(retired)
                self._busy.add(child)
        finally:
            self._dispose(retired)
        return child

    def _take(self, tenant_number: int, retired: list[Child]) -> Child | None:
        for idle in reversed([idle for idle in self._idle if idle.tenant_number == tenant_number]):
            self._idle.remove(idle)
            if not idle.child.ended():
                return idle.child
            retired.append(idle.child)
        return None

    def _begin(self, retired: list[Child]) -> Child:
        if len(self._busy) >= self._size:
            self._free_dead()
        if len(self._busy) >= self._size:
            raise PoolExhaustedError(f"all {self._size} runtimes of level {self.level} are in use")
        while self._idle and len(self._busy) + len(self._idle) >= _KEPT * self._size:
            retired.append(self._idle.pop(0).child)
        return self._spawn()

    def _free_dead(self) -> None:
        """A dead runner takes nobody's place, though whoever had it did not give it back: a fault of ours."""
        dead = {child for child in self._busy if child.ended()}
        if not dead:
            return
        told = {"event": "RUNTIMES_FORGOTTEN"}
        logger.error("%d dead runtimes were not given back", len(dead), extra=told)
        self._busy -= dead
        self._ending |= (
            dead  # disposed of by the sweep: by then nobody is at their streams any more
        )

    def _spawn(self) -> Child:
        return Child(
            packages=self._packages,
            tasks=self._tasks,
            paths=self._paths,
            watchdog=self._watchdog,
        )


class SharedRuntime(Runtime):
    """A runner of the pool while one placement has it."""

    def __init__(
        self,
        backend: SharedBackend,
        child: Child,
        placement: Placement,
        grants: Sequence[Grant],
        on_resource: OnResource,
    ) -> None:
        self._backend = backend
        self._child = child
        self._placement = placement
        self._grants = tuple(grants)
        self._on_resource = on_resource
        self._handles: set[str] = set()  # that were allocated, and not said to be closed
        self._opened = False
        self._closing = False
        self._closed = False
        self._lock = threading.Lock()  # held over any look at `_closed` that is acted upon

    @property
    def pid(self) -> int:
        """Return the process id of the runner."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the runner is there and ours."""
        return not self._closed and not self._child.ended()

    @property
    def lost(self) -> bool:
        """Whether the watchdog has ended the runner."""
        return self._child.is_lost

    def open(self) -> None:
        """Open the context in the runner."""
        identity = Open(
            execution_id=self._placement.execution_id,
            tenant_id=self._placement.tenant_id,
            user_id=self._placement.user_id,
            request_id=self._placement.request_id,
            epoch=self._placement.epoch,
            resources=self._grants,
        )
        eager = any(grant.eager for grant in self._grants)
        self._grants = ()  # what they hold is kept no longer than it is needed
        if self._child.has_answered and not eager:
            # It has imported everything and has nothing to wait for: its answer comes before that to the first step.
            self._child.post(identity, Ready, _SEND_TIMEOUT)
        else:
            self._child.ask(identity, Ready, _START_TIMEOUT, self._hear)
        self._opened = True

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Run one attempt of a step under supervision."""
        return Supervision(
            self._child,
            run,
            deadline=deadline,
            cancelled=cancelled,
            on_frame=on_frame,
            on_resource=self._hear,
        ).result()

    def begin_close(self) -> None:
        """Tell the runner; while it tears the context down, its worker has something to write."""
        if self._opened and not self._closing and self.alive:
            self._closing = True
            with (
                reported("a runner was not told to tear its context down"),
                contextlib.suppress(RuntimeStartError),  # it is dead then, which `close` finds
            ):
                self._child.post(Close(), Closed, _SEND_TIMEOUT)

    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down and give the runner back, whatever goes wrong meanwhile."""
        if self._closed:
            return ()
        errors: tuple[str, ...] = (_FAULT,)
        try:
            with reported("a context was not torn down"):
                errors = self._teardown(timeout)
        finally:
            self._give_back(clean=not errors)
        return errors

    def _give_back(self, *, clean: bool) -> None:
        reusable = False
        try:
            with reported("a runner could not be looked at"), self._lock:
                self._closed = True
                reusable = clean and not self._child.ended()
        finally:
            self._backend.give_back(self._child, self._placement.tenant_number, clean=reusable)

    def kill(self) -> None:
        """End the runner and what it started."""
        with self._lock:
            # Once given back, the runner may be somebody else's.
            if not self._closed:
                self._child.kill()

    def _teardown(self, timeout: float) -> tuple[str, ...]:
        if not self._opened or not self.alive:
            return ()
        self.begin_close()
        try:
            errors = self._child.answer(Closed, timeout, self._hear).errors
        except RuntimeStartError as error:
            return (str(error),)
        if self._handles and not errors:
            # Whatever it says, what is open in it is not for the next run.
            return (f"handles that were not closed: {len(self._handles)}",)
        return errors

    def _hear(self, frame: Resource) -> None:
        self._on_resource(frame)
        if frame.event == "allocated":
            self._handles.add(frame.resource_id)
        elif frame.event == "disposed" and not frame.error:
            self._handles.discard(frame.resource_id)
