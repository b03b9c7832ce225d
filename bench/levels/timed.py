"""The backends of the levels, with a note of how long each runtime took from being asked for to its first step.

Timing: adds some microseconds to a run.
Model: passes every call on.
Guarantee: as the level itself.
Failure: as the level itself.
"""

import threading
import time
from collections.abc import Sequence

from bench.levels.starts import Start, write_start
from isolane.limits import RunLimits, Usage
from isolane.protocol import Grant, Run
from isolane.results import StepResult
from resources.gate.gate import OnConnection
from resources.placement import Placement
from resources.runtimes.base import UNLIMITED, OnFrame, OnResource, RunIdentity, Runtime, ignore
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend


class TimedRuntime(Runtime):
    """A runtime whose first step tells when it began."""

    def __init__(self, runtime: Runtime, asked_at: float, *, counts_itself: bool) -> None:
        self._runtime = runtime
        self._asked_at = asked_at
        self._counts_itself = counts_itself  # by a cgroup: then nobody waits for its processes
        self._start_ms: float | None = None

    @property
    def alive(self) -> bool:
        """As of the runtime itself."""
        return self._runtime.alive

    @property
    def lost(self) -> bool:
        """As of the runtime itself."""
        return self._runtime.lost

    @property
    def usage(self) -> Usage:
        """As of the runtime itself."""
        return self._runtime.usage

    def open(self) -> None:
        """Open the context."""
        self._runtime.open()

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Run one attempt; the first tells the start."""
        result = self._runtime.run(run, deadline=deadline, cancelled=cancelled, on_frame=on_frame)
        if self._start_ms is None and isinstance(result.output, float):
            self._start_ms = (result.output - self._asked_at) * 1000
        return result

    def begin_close(self) -> None:
        """Start the teardown."""
        self._runtime.begin_close()

    def close(self, timeout: float) -> tuple[str, ...]:
        """Tear the context down, and write down the start."""
        errors = self._runtime.close(timeout)
        start_ms, self._start_ms = self._start_ms, None
        if start_ms is not None:
            used = self.usage.cpu_seconds if self._counts_itself else 0.0
            write_start(Start(start_ms, used * 1000))
        return errors

    def kill(self) -> None:
        """End it at once."""
        self._runtime.kill()


class TimedProcessBackend(ProcessBackend):
    """The level `process`, timed."""

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
        """Start a sandbox."""
        asked_at = time.monotonic()
        runtime = super().start(
            placement,
            identity=identity,
            limits=limits,
            grants=grants,
            on_resource=on_resource,
            on_connection=on_connection,
        )
        return TimedRuntime(runtime, asked_at, counts_itself=self.cgroups.cgroups is not None)


class TimedSharedBackend(SharedBackend):
    """The level `shared`, timed."""

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
        asked_at = time.monotonic()
        runtime = super().start(
            placement,
            identity=identity,
            limits=limits,
            grants=grants,
            on_resource=on_resource,
            on_connection=on_connection,
        )
        return TimedRuntime(runtime, asked_at, counts_itself=False)
