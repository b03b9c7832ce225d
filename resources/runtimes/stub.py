"""A backend in memory, for tests: each node behaves as scripted."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isolane.limits import RunLimits, Usage
from isolane.protocol import Grant, NodeCatalogue, NodeDescription, Run
from isolane.results import Code, StepResult
from resources.gate.gate import OnConnection
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
    Availability,
    OnFrame,
    OnResource,
    RunIdentity,
    Runtime,
    RuntimeBackend,
    ignore,
)

Behaviour = Callable[[Run, threading.Event, OnFrame], StepResult]


def succeeds(output: Any) -> Behaviour:
    """Script a node that returns this output."""
    return lambda run, cancelled, on_frame: StepResult.succeeded(
        step=run.step, attempt=run.attempt, output=output
    )


def fails(code: Code, message: str = "scripted") -> Behaviour:
    """Script a node that fails with this code."""
    return lambda run, cancelled, on_frame: StepResult.failed(
        step=run.step, attempt=run.attempt, code=code, message=message
    )


class StubBackend(RuntimeBackend):
    """Records what was run and closed, for tests."""

    def __init__(
        self,
        *,
        level: str,
        script: Mapping[str, Behaviour],
        descriptions: Mapping[str, NodeDescription] | None = None,
    ) -> None:
        super().__init__(level=level)
        self.script = script
        self._descriptions = descriptions or {}
        self.runs: list[tuple[Placement, Run]] = []
        self.closed: list[Placement] = []
        self.runtimes: list[StubRuntime] = []
        self.kept_until = 0.0
        self.usage = Usage()  # of each runtime

    def availability(self) -> Availability:
        """Return that it is always available."""
        return Availability(ok=True)

    def describe(self) -> NodeCatalogue:
        """Return the script's nodes; unless described, they take any parameters."""
        nodes = tuple(
            self._descriptions.get(name, _description(name)) for name in sorted(self.script)
        )
        return NodeCatalogue(nodes=nodes, packages={}, python="stub")

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
        """Start another runtime, however many there are; the script decides what it opens."""
        runtime = StubRuntime(self, placement, identity, limits, tuple(grants), on_resource)
        self.runtimes.append(runtime)
        return runtime

    def keepalive(self, *, until: float) -> None:
        """Record the deadline."""
        self.kept_until = until

    def sweep(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Kill all runtimes."""
        for runtime in self.runtimes:
            runtime.kill()


def _description(name: str) -> NodeDescription:
    return NodeDescription(name=name, parameters={}, idempotent=False, deterministic=False)


class StubRuntime(Runtime):
    """Runs the script."""

    def __init__(
        self,
        backend: StubBackend,
        placement: Placement,
        identity: RunIdentity,
        limits: RunLimits,
        grants: tuple[Grant, ...],
        on_resource: OnResource,
    ) -> None:
        self._backend = backend
        self.placement = placement
        self.identity = identity
        self.limits = limits
        self.grants = grants
        self.on_resource = on_resource
        self._alive = True

    @property
    def alive(self) -> bool:
        """True until it is closed or killed."""
        return self._alive

    @property
    def usage(self) -> Usage:
        """Return the usage that the backend was given, once it is closed."""
        return self._backend.usage if self.placement in self._backend.closed else Usage()

    def open(self) -> None:
        """Do nothing."""

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Record the run and call the script of its node."""
        self._backend.runs.append((self.placement, run))
        missing = fails(Code.SKILL_NOT_FOUND, f"the script has no node {run.uses}")
        return self._backend.script.get(run.uses, missing)(run, cancelled, on_frame)

    def begin_close(self) -> None:
        """Do nothing: its end takes no time."""

    def close(self, timeout: float) -> tuple[str, ...]:
        """Record the end, once."""
        if self.placement not in self._backend.closed:
            self._backend.closed.append(self.placement)
        self._alive = False
        return ()

    def kill(self) -> None:
        """Mark it dead."""
        self._alive = False
