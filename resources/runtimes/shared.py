"""The level `shared`: long-lived runners, one execution at a time.

Timing: a start takes an idle runner or begins a new one; its first `open` waits for its imports.
Model: a pool per backend (`resources.runtimes.pool`), used from any thread.
Guarantee: a runner is used again only after a clean teardown, with all handles said to be closed and
an empty folder, and only for the tenant that it was begun for: what a step changed in Python's own
state stays with that tenant.
Failure: a runner that was killed, died or left something behind is ended, and its place is free, whatever goes wrong
meanwhile.
"""

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

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
from resources.placement import Placement
from resources.runtimes.base import (
    Availability,
    OnFrame,
    OnResource,
    RunIdentity,
    Runtime,
    RuntimeBackend,
    RuntimeStartError,
    ignore,
)
from resources.runtimes.child import RunnerProcess
from resources.runtimes.faults import reported
from resources.runtimes.pool import RunnerPool
from resources.runtimes.supervision import Supervision
from resources.runtimes.sweeping import FolderSweep
from resources.runtimes.watchdog import Watchdog

_START_TIMEOUT = 30.0  # seconds for a runner to import its packages and answer
_SEND_TIMEOUT = 5.0  # seconds for a runner that waits for frames to take one
_FIRST_SWEEP_SECONDS = 2.0  # a worker's start does not wait for longer
_FAULT = "the teardown went wrong; the worker's log says why"


class SharedBackend(RuntimeBackend):
    """A pool of runners of the worker's own user."""

    pool_class: ClassVar[type[RunnerPool]] = RunnerPool

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
        self._packages = packages
        self._tasks = tasks
        self._paths = paths
        self._pool = self.pool_class(level=level, size=size, begin=self._spawn)
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
        identity: RunIdentity,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or begin one."""
        child = self._pool.take(placement.tenant_id)
        return SharedRuntime(self._pool, child, placement, identity, grants, on_resource)

    def keepalive(self, *, until: float) -> None:
        """Tell the watchdog."""
        self._watchdog.keepalive(until)

    def sweep(self) -> None:
        """End what is left of runners: of this worker's own, and of those that no living worker holds."""
        self._pool.end_retired()
        self._folders.turn()

    def stop(self) -> None:
        """End all runners; those in use are disposed of by their users."""
        self._pool.stop()
        with reported("the watchdog was not ended"):
            self._watchdog.stop()

    def _spawn(self) -> RunnerProcess:
        return RunnerProcess(
            packages=self._packages,
            tasks=self._tasks,
            paths=self._paths,
            watchdog=self._watchdog,
        )


class SharedRuntime(Runtime):
    """A runner of the pool while one placement has it."""

    def __init__(
        self,
        pool: RunnerPool,
        child: RunnerProcess,
        placement: Placement,
        identity: RunIdentity,
        grants: Sequence[Grant],
        on_resource: OnResource,
    ) -> None:
        self._pool = pool
        self._child = child
        self._placement = placement
        self._identity = identity
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
        frame = Open(
            execution_id=str(self._placement.execution_id),
            tenant_id=self._identity.tenant,
            user_id=self._identity.user_id,
            request_id=self._identity.request_id,
            epoch=self._placement.epoch,
            resources=self._grants,
        )
        eager = any(grant.eager for grant in self._grants)
        self._grants = ()  # what they hold is kept no longer than it is needed
        if self._child.has_answered and not eager:
            # It has imported everything and has nothing to wait for: its answer comes before that to the first step.
            self._child.post(frame, Ready, _SEND_TIMEOUT)
        else:
            self._child.ask(frame, Ready, _START_TIMEOUT, self._hear)
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
            self._pool.give_back(self._child, self._placement.tenant_id, clean=reusable)

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
