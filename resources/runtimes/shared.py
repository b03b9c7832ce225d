"""The level `shared`: long-lived runners, one execution at a time.

A clean teardown means that all handles are reported closed and the folder is empty. A step's changes to Python's own
state stay within its tenant.

Timing: a start takes an idle runner or begins a new one; its first `open` waits for its imports.
Model: a pool per backend (`resources.runtimes.pool`), used from any thread.
Guarantee: a runner is reused only after a clean teardown, and only for the tenant that it was started for.
Failure: a runner that died or left something behind is ended, and its slot is freed in any case.
"""

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from isolane.limits import Limits
from isolane.protocol import (
    Close,
    Closed,
    Describe,
    Grant,
    NodeCatalogue,
    Open,
    Ready,
    Resource,
    Run,
)
from isolane.results import StepResult
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
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
_SEND_TIMEOUT = 5.0  # seconds for a waiting runner to read a frame
_FIRST_SWEEP_SECONDS = 2.0  # a worker's start does not wait longer
_FAULT = "the teardown failed; the worker's log says why"


class SharedBackend(RuntimeBackend):
    """A pool of runners that run as the worker's own user."""

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
        """Say whether this Python can supervise processes safely."""
        if hasattr(os, "waitid"):
            return Availability(ok=True)
        return Availability(ok=False, reason="this Python has no os.waitid")

    def describe(self) -> NodeCatalogue:
        """Ask a new runner for its catalogue."""
        child = self._spawn()
        try:
            return child.ask(Describe(), NodeCatalogue, _START_TIMEOUT)
        finally:
            child.dispose()

    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        limits: Limits = UNLIMITED,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or start one."""
        child = self._pool.take(placement.tenant_id)
        return SharedRuntime(
            self._pool,
            child,
            placement,
            identity,
            grants,
            on_resource,
            output_kb=limits.output_kb,
        )

    def keepalive(self, *, until: float) -> None:
        """Extend the watchdog's deadline."""
        self._watchdog.keepalive(until)

    def sweep(self) -> None:
        """End the remains of runners: of this worker, and of dead workers."""
        self._pool.end_retired()
        self._folders.turn()

    def stop(self) -> None:
        """End all runners; busy ones are disposed of by their users."""
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
    """A runner of the pool while one placement uses it."""

    def __init__(
        self,
        pool: RunnerPool,
        child: RunnerProcess,
        placement: Placement,
        identity: RunIdentity,
        grants: Sequence[Grant],
        on_resource: OnResource,
        *,
        output_kb: int | None = None,
    ) -> None:
        self._pool = pool
        self._child = child
        self._placement = placement
        self._identity = identity
        self._grants = tuple(grants)
        self._on_resource = on_resource
        self._output_kb = output_kb
        self._handles: set[str] = set()  # allocated, and not reported closed
        self._opened = False
        self._closing = False
        self._closed = False
        self._lock = threading.Lock()  # held while `_closed` is checked and acted upon

    @property
    def pid(self) -> int:
        """Return the process id of the runner."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """True if the runner lives and is this placement's."""
        return not self._closed and not self._child.ended()

    @property
    def lost(self) -> bool:
        """True if the watchdog has ended the runner."""
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
        self._grants = ()  # their secrets are no longer needed
        if self._child.has_answered and not eager:
            # It has imported everything and opens nothing eager: its answer comes before that to the first step.
            self._child.post(frame, Ready, _SEND_TIMEOUT)
        else:
            self._child.ask(frame, Ready, _START_TIMEOUT, self._track)
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
            on_resource=self._track,
            output_kb=self._output_kb,
        ).result()

    def begin_close(self) -> None:
        """Send CLOSE; while the runner tears the context down, the worker writes the checkpoint."""
        if self._opened and not self._closing and self.alive:
            self._closing = True
            with (
                reported("a runner was not sent CLOSE"),
                contextlib.suppress(RuntimeStartError),  # it is dead then, which `close` finds
            ):
                self._child.post(Close(), Closed, _SEND_TIMEOUT)

    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down and give the runner back in any case."""
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
            with reported("the state of a runner was not read"), self._lock:
                self._closed = True
                reusable = clean and not self._child.ended()
        finally:
            self._pool.give_back(self._child, self._placement.tenant_id, clean=reusable)

    def kill(self) -> None:
        """End the runner and what it started."""
        with self._lock:
            # Once given back, the runner may be another placement's.
            if not self._closed:
                self._child.kill()

    def _teardown(self, timeout: float) -> tuple[str, ...]:
        if not self._opened or not self.alive:
            return ()
        self.begin_close()
        try:
            errors = self._child.answer(Closed, timeout, self._track).errors
        except RuntimeStartError as error:
            return (str(error),)
        if self._handles and not errors:
            # Whatever it answers, open handles must not reach the next run.
            return (f"handles that were not closed: {len(self._handles)}",)
        return errors

    def _track(self, frame: Resource) -> None:
        self._on_resource(frame)
        if frame.event == "allocated":
            self._handles.add(frame.resource_id)
        elif frame.event == "disposed" and not frame.error:
            self._handles.discard(frame.resource_id)
