"""Real workers on real servers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from typing import Protocol

import pytest
import redis

from executions.placement.models import Worker
from resources.runtimes.base import Availability
from tenants.scope import TenantRef, platform_scope
from tests.factories import distrust
from tests.plugin import HOME, ROOT, SERVERS
from tests.waiting import wait_for


class StartWorker(Protocol):
    """Starts a worker and waits until it has registered."""

    def __call__(self, *, fault: str = "", links: int = 1, capacity: int = 4) -> "WorkerProcess":
        """With a fault: one to which that happens when so many links have come to it."""


_numbers = count(1)


class WorkerProcess:
    """`celery -A orchestrator worker`, as an operator starts it, with a name to find it by."""

    def __init__(self, *, fault: str = "", links: int = 1, capacity: int = 4) -> None:
        self.name = f"test{next(_numbers)}@here"
        self.log = HOME / f"{self.name}.log"
        program = "tests.acceptance.survival.worker" if fault else "celery"
        environ = {
            "DATABASE_URL": SERVERS.worker_url,
            "PGAPPNAME": self.name,
            "ISOLANE_LOG_LEVEL": "INFO",
            "DATABASE_POOL_SIZE": "0",
            "ISOLANE_WORKER_CAPACITY": str(capacity),
            "ISOLANE_WORKER_CONCURRENCY": str(capacity + 2),
            "FAULT": fault,
            "FAULT_COUNT": str(links),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", program, "-A", "orchestrator", "worker", "-n", self.name],
                cwd=ROOT,
                env=os.environ | environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def row(self) -> Worker | None:
        """Its row in the registry, once it is there."""
        if self.process.poll() is not None:
            raise AssertionError(f"the worker ended:\n{self.log.read_text()[-3000:]}")
        with platform_scope():
            return Worker.objects.filter(node_name=self.name).first()

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait(timeout=10)

    def terminate(self) -> None:
        """Ask it to drain, without waiting."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Drain and wait."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.terminate()
            self.process.wait(timeout=30)
        # Their login has the rights that workers need, and no others.
        assert "permission denied" not in self.log.read_text()


@pytest.fixture
def both_levels(acme: TenantRef, globex: TenantRef, process_level: Availability) -> dict[str, str]:
    """The levels of runs: acme's, which is trusted, have `shared`; globex's, which is not, have `process`.

    Where the machine cannot give `process`, both are trusted; the tests of that level itself say so by being skipped.
    """
    if process_level.ok:
        distrust(globex)
    return {acme.schema: "shared", globex.schema: "process" if process_level.ok else "shared"}


@pytest.fixture
def main_level(acme: TenantRef, globex: TenantRef, process_level: Availability) -> str:
    """The level of all runs: `process`, as no tenant is trusted; `shared` where the machine cannot give it."""
    if not process_level.ok:
        return "shared"
    for tenant in (acme, globex):
        distrust(tenant)
    return "process"


@pytest.fixture
def start_worker(database: None, broker: "redis.Redis") -> Iterator[StartWorker]:
    """Start workers; all of them are stopped at the end."""
    started: list[WorkerProcess] = []

    def start(*, fault: str = "", links: int = 1, capacity: int = 4) -> WorkerProcess:
        worker = WorkerProcess(fault=fault, links=links, capacity=capacity)
        started.append(worker)
        wait_for(worker.row, "the worker to register", 30)
        return worker

    yield start
    for worker in started:
        worker.stop()
