"""A real pool of runners with the nodes of tests.nodes."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from foundation.process_states import ENDED
from isolane.protocol import Cost, Log, Progress, Run
from isolane.results import StepResult
from resources.runtimes.base import RunIdentity, Runtime, RuntimeBackend
from resources.runtimes.shared import SharedBackend, SharedRuntime
from tests.placements import a_placement

NUMBERS = {"acme": 1, "globex": 2}


def number_of(tenant_id: str) -> int:
    """The number of a tenant, as the database would have given it."""
    return NUMBERS.setdefault(tenant_id, len(NUMBERS) + 1)


PACKAGES = ("tests.nodes", "tests.integration.resources.runtimes.nodes")


def wait_until(condition: Callable[[], Any], timeout: float = 10.0) -> Any:
    """Return the condition's first true value, or fail."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)
    return value


def is_gone(pid: int) -> bool:
    """Say whether no process runs under this id; a zombie does not run."""
    try:
        return psutil.Process(pid).status() in ENDED
    except psutil.NoSuchProcess:
        return True


@cache
def why_not(backend: Callable[..., RuntimeBackend]) -> str:
    """Return why this machine does not give a level, empty if it does; without packages, which are no reason."""
    bare = backend(level="tried", size=1)
    try:
        return bare.availability().reason
    finally:
        bare.stop()


def sleepers(*times: str) -> list[int]:
    """Return the processes of this machine that sleep for so long, in whatever namespace."""
    wanted = [f"sleep\0{seconds}\0".encode() for seconds in times]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() in wanted:
                found.append(int(path.parent.name))
    return found


def a_run(uses: str, parameters: dict[str, Any] | None = None, **changes: Any) -> Run:
    """Build a RUN of a test node."""
    fields: dict[str, Any] = {
        "step": "pay",
        "uses": uses,
        "parameters": parameters or {},
        "variables": {},
        "attempt": 0,
        "seed": 7,
        "timeout_s": 30.0,
        "idempotency_key": "key",
    }
    return Run(**fields | changes)


@dataclass
class Driver:
    """Runs steps in a runtime and keeps what they say."""

    runtime: Runtime
    cancelled: threading.Event = field(default_factory=threading.Event)
    frames: list[Log | Progress | Cost] = field(default_factory=list)
    on_progress: Callable[[], object] = lambda: None

    def run(
        self,
        uses: str,
        parameters: dict[str, Any] | None = None,
        *,
        seconds: float = 30,
        step: str = "pay",
        variables: dict[str, Any] | None = None,
    ) -> StepResult:
        """Run one step."""
        return self.runtime.run(
            a_run(uses, parameters, step=step, timeout_s=float(seconds), variables=variables or {}),
            deadline=time.monotonic() + seconds,
            cancelled=self.cancelled,
            on_frame=self._hear,
        )

    def _hear(self, frame: Log | Progress | Cost) -> None:
        self.frames.append(frame)
        if isinstance(frame, Progress):
            self.on_progress()

    def output(
        self, uses: str, parameters: dict[str, Any] | None = None, *, step: str = "pay"
    ) -> Any:
        """Run one step that must succeed and return its output."""
        result = self.run(uses, parameters, step=step)
        assert result.status == "succeeded", result
        return result.output


def said(driver: Driver) -> list[tuple[str, str]]:
    """Return the log lines since the last call."""
    lines: list[tuple[str, str]]
    lines = [(frame.level, frame.message) for frame in driver.frames if isinstance(frame, Log)]
    driver.frames.clear()
    return lines


@pytest.fixture
def backend() -> Iterator[SharedBackend]:
    """A pool of two."""
    pool = SharedBackend(level="shared", size=2, packages=PACKAGES)
    yield pool
    pool.stop()


Start = Callable[..., SharedRuntime]


@pytest.fixture
def start(backend: SharedBackend) -> Iterator[Start]:
    """Start and open runtimes that are closed at the end of the test."""
    started = []

    def start_one(
        tenant_id: str = "acme", execution_id: str = "e1", epoch: int = 1
    ) -> SharedRuntime:
        runtime = backend.start(
            a_placement(execution_id, tenant_id=number_of(tenant_id), epoch=epoch),
            identity=RunIdentity(tenant=tenant_id, user_id="ada", request_id="r1"),
        )
        assert isinstance(runtime, SharedRuntime)
        started.append(runtime)
        runtime.open()
        return runtime

    yield start_one
    for runtime in started:
        runtime.close(5)


@pytest.fixture
def driver(start: Start) -> Driver:
    """An open runtime ready for steps."""
    return Driver(start())
