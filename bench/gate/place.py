"""Runs of one level against servers on loopback, and the CPU time of each process that had a part in them."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psutil

from isolane.limits import RunLimits
from isolane.protocol import Grant, Run
from resources.placement import Placement
from resources.runtimes.base import RunIdentity, Runtime, RuntimeBackend

LIMITS = RunLimits(
    ram_mb=512, processes=64, disk_mb=16, open_files=256, connections=64, network_mb=100_000
)
RUN_SECONDS = 600.0
_CLOSE_SECONDS = 5.0
_GATE_THREAD = "isolane-gate"
_LANE = "lane.bench"


class Found(NamedTuple):
    """The result of a step, and the time (monotonic) at which it was here."""

    output: Any
    at: float


class OpenRun:
    """A run whose context is open."""

    def __init__(self, runtime: Runtime, pid: int) -> None:
        self._runtime = runtime
        self.pid = pid  # of the runner at `shared`, of its guard at `process`

    def step(self, uses: str, **parameters: Any) -> Found:
        """Run a step; RuntimeError if it fails, since a fast failure is not a fast step."""
        deadline = time.monotonic() + RUN_SECONDS
        run = Run(
            step="s",
            uses=uses,
            parameters=parameters,
            variables={},
            attempt=0,
            seed=1,
            timeout_s=RUN_SECONDS,
            idempotency_key="bench",
        )
        result = self._runtime.run(
            run, deadline=deadline, cancelled=threading.Event(), on_frame=lambda _: None
        )
        at = time.monotonic()
        if result.code is not None:
            raise RuntimeError(f"{uses}: {result.code} {result.message} {result.trace}")
        return Found(result.output, at)


@contextmanager
def opened(backend: RuntimeBackend, grants: Sequence[Grant] = ()) -> Iterator[OpenRun]:
    """Start a runtime and open its context; the whole is closed afterwards."""
    placement = Placement(
        tenant_id=1,
        execution_id=uuid4(),
        epoch=1,
        boot=UUID(int=1),
        worker="bench",
        lane=_LANE,
    )
    runtime: Any = backend.start(
        placement, identity=RunIdentity(tenant="acme"), limits=LIMITS, grants=grants
    )
    try:
        runtime.open()
        yield OpenRun(runtime, runtime.pid)
    finally:
        runtime.close(_CLOSE_SECONDS)


def parts(pid: int, *, sandboxed: bool) -> dict[str, int]:
    """Return the processes of a run by name: the runner is the first that its guard has forked."""
    if not sandboxed:
        return {"runner": pid}
    numbers = {_number_inside(child.pid): child.pid for child in psutil.Process(pid).children()}
    found = dict(
        zip(("runner", "forwarder"), (numbers[key] for key in sorted(numbers)), strict=False)
    )
    return {"guard": pid, **found}


def _number_inside(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise LookupError(f"process {pid} has no number in its namespace")


class CpuWatch:
    """The CPU seconds of some processes, and of this process's gate thread, since it was made."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._before = self._now()

    def spent(self) -> dict[str, float]:
        """Return the seconds by name."""
        return {name: seconds - self._before[name] for name, seconds in self._now().items()}

    def _now(self) -> dict[str, float]:
        found = {name: time.clock_gettime(_cpu_clock(pid)) for name, pid in self._pids.items()}
        for thread in threading.enumerate():
            if thread.name == _GATE_THREAD and thread.ident is not None:
                found["gate"] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        return found


def _cpu_clock(pid: int) -> int:
    """Return the number of a process's CPU clock, as `clock_getcpuclockid` makes it."""
    return (~pid << 3) | 2
