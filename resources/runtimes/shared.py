"""The level `shared`: long-lived runners, one execution at a time.

A clean teardown means that all handles are reported closed and the folder is empty. A step's changes to Python's own
state stay within its tenant.

Timing: a start takes an idle runner, or has one forked.
Model: a pool per backend (`resources.runtimes.pool`), used from any thread.
Guarantee: a runner is reused only after a clean teardown, and only for the tenant that it was started for.
Failure: a runner that died or left something behind is ended, and its slot is freed in any case.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from isolane.limits import RunLimits
from isolane.protocol import Describe, Grant, NodeCatalogue
from resources.gate.gate import OnConnection
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
    Availability,
    OnResource,
    RunIdentity,
    Runtime,
    RuntimeBackend,
    RuntimeStartError,
    ignore,
)
from resources.runtimes.faults import reported
from resources.runtimes.forked_runtime import START_TIMEOUT, ForkedRuntime
from resources.runtimes.idle import usual_idle_mb
from resources.runtimes.level_facts import late_facts
from resources.runtimes.pool import RunnerPool
from resources.runtimes.shared_runner import SharedRunner
from resources.runtimes.sweeping import FolderSweep
from resources.runtimes.usable_ram import usable_ram_mb
from resources.runtimes.watchdog import Watchdog
from resources.runtimes.zygote import ZygoteOptions, release_zygote, share_zygote

_FIRST_SWEEP_SECONDS = 2.0  # a worker's start does not wait longer


class SharedBackend(RuntimeBackend):
    """A pool of runners that run as the worker's own user."""

    pool_class: ClassVar[type[RunnerPool]] = RunnerPool

    def __init__(
        self,
        *,
        level: str,
        size: int,
        idle_mb: float | None = None,
        packages: Sequence[str] = (),
        tasks: Sequence[str] = (),
        paths: Sequence[str | Path] = (),
        hidden: Sequence[str | Path] = (),
    ) -> None:
        super().__init__(level=level)
        self._options = ZygoteOptions.of(packages=packages, tasks=tasks, paths=paths, hidden=hidden)
        self._zygote = share_zygote(self._options, self)
        most_mb = usual_idle_mb(usable_ram_mb()) if idle_mb is None else idle_mb
        self._pool = self.pool_class(level=level, size=size, idle_mb=most_mb, begin=self._fork)
        self._watchdog = Watchdog()
        self._folders = FolderSweep()
        self._folders.turn(_FIRST_SWEEP_SECONDS)

    def availability(self) -> Availability:
        """Say whether this Python can supervise processes safely, and the packages can be imported."""
        if not hasattr(os, "pidfd_open"):
            return Availability(ok=False, reason="this Python has no os.pidfd_open: use Linux")
        try:
            self._zygote.start()
        except RuntimeStartError as error:
            return Availability(ok=False, reason=str(error))
        return Availability(ok=True)

    def facts(self) -> tuple[str, ...]:
        """Return what its runners import by themselves."""
        return late_facts(self._zygote.late)

    def describe(self) -> NodeCatalogue:
        """Ask a new runner for its catalogue."""
        child = self._fork()
        try:
            return child.ask(Describe(), NodeCatalogue, START_TIMEOUT)
        finally:
            child.dispose()

    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        limits: RunLimits = UNLIMITED,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
        on_connection: OnConnection = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or start one."""
        child = self._pool.take(placement.tenant_id)
        return SharedRuntime(self._pool, child, placement, identity, limits, grants, on_resource)

    def keepalive(self, *, until: float) -> None:
        """Extend the watchdog's deadline."""
        self._watchdog.keepalive(until)

    def sweep(self) -> None:
        """End runners that are not used, and the remains of others, also of dead workers."""
        self._pool.sweep()
        self._folders.turn()

    def stop(self) -> None:
        """End all runners; busy ones are disposed of by their users."""
        self._pool.stop()
        with reported("the watchdog was not ended"):
            self._watchdog.stop()
        with reported("the zygote was not ended"):
            release_zygote(self._zygote, self)

    def _fork(self) -> SharedRunner:
        try:
            return SharedRunner(zygote=self._zygote, watchdog=self._watchdog)
        except OSError as error:
            raise RuntimeStartError(f"the runner cannot be started: {error}") from error


class SharedRuntime(ForkedRuntime):
    """A runner of the pool while one placement uses it."""

    _child: SharedRunner

    def __init__(
        self,
        pool: RunnerPool,
        child: SharedRunner,
        placement: Placement,
        identity: RunIdentity,
        limits: RunLimits,
        grants: Sequence[Grant],
        on_resource: OnResource,
    ) -> None:
        super().__init__(child, placement, identity, limits, grants, on_resource)
        self._pool = pool
        with reported("what a runner has used before was not read"):
            child.begin_run()

    def _return_child(self, *, clean: bool) -> None:
        with reported("what a run used was not read"):
            self._usage = self._child.end_run()
        self._pool.give_back(self._child, self._placement.tenant_id, clean=clean)
