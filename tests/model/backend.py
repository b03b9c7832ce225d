"""Runtimes that do what a driver says, and count how often they are closed."""

import threading
from collections.abc import Callable, Sequence

from isolane.limits import RunLimits
from isolane.protocol import Grant, NodeCatalogue, NodeDescription, Run
from isolane.results import StepResult
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
from tests.model.script import MEND, WORK

Play = Callable[["ScriptedRuntime", Run, threading.Event, OnFrame], StepResult]


class ScriptedBackend(RuntimeBackend):
    """Keeps the runtimes that it has started."""

    def __init__(self, *, level: str, play: Play) -> None:
        super().__init__(level=level)
        self.play = play
        self.runtimes: list[ScriptedRuntime] = []

    def availability(self) -> Availability:
        """Memory is always there."""
        return Availability(ok=True)

    def describe(self) -> NodeCatalogue:
        """Two nodes that can give every guarantee."""
        nodes = tuple(
            NodeDescription(
                name=name, parameters={}, idempotent=True, deterministic=True, uses_key=True
            )
            for name in (MEND, WORK)
        )
        return NodeCatalogue(nodes=nodes, packages={}, python="scripted")

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
        """Start another one."""
        runtime = ScriptedRuntime(self, placement)
        self.runtimes.append(runtime)
        return runtime

    def keepalive(self, *, until: float) -> None:
        """Let them live in any case."""

    def sweep(self) -> None:
        """Find nothing."""

    def stop(self) -> None:
        """Kill all runtimes."""
        for runtime in self.runtimes:
            runtime.kill()


class ScriptedRuntime(Runtime):
    """Asks the driver what to do."""

    def __init__(self, backend: ScriptedBackend, placement: Placement) -> None:
        self._backend = backend
        self._alive = True
        self._closing = False
        self.placement = placement
        self.closed = 0

    @property
    def alive(self) -> bool:
        """True if it was neither closed nor killed."""
        return self._alive

    def open(self) -> None:
        """Open nothing."""

    def run(
        self, run: Run, *, deadline: float, cancelled: threading.Event, on_frame: OnFrame
    ) -> StepResult:
        """Do what the driver says; nothing runs in a runtime that is dead, or told to close."""
        assert self._alive
        assert not self._closing
        return self._backend.play(self, run, cancelled, on_frame)

    def begin_close(self) -> None:
        """Let nothing run from now on."""
        self._closing = True

    def close(self, timeout: float) -> tuple[str, ...]:
        """Count."""
        self.closed += 1
        self._alive = False
        return ()

    def kill(self) -> None:
        """Be dead."""
        self._alive = False
