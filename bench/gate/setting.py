"""The backends and grants of the benchmark, for as long as it runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.gate.measure import ADDRESS, PROCESS, SHARED, Setting
from isolane.protocol import Grant
from orchestrator.embedded.customer import DATABASE, CustomerPostgres
from orchestrator.env import PROJECT_ROOT
from resources.runtimes.process import ProcessBackend
from resources.runtimes.shared import SharedBackend


@contextmanager
def setting_of(
    customer: CustomerPostgres, pid: int, port: int, *, nodes: str, size: int, alive: float
) -> Iterator[Setting]:
    """Start the backends; they are stopped afterwards."""
    backends = {
        SHARED: SharedBackend(level=SHARED, size=size, packages=[nodes], paths=[PROJECT_ROOT]),
        PROCESS: ProcessBackend(level=PROCESS, size=size, packages=[nodes], paths=[PROJECT_ROOT]),
    }
    try:
        for backend in backends.values():
            backend.keepalive(until=time.monotonic() + alive)
        yield Setting(backends, pid, port, _database(customer))
    finally:
        for backend in backends.values():
            backend.stop()


def _database(customer: CustomerPostgres) -> Grant:
    return Grant(
        name="database",
        type="database",
        definition="database",
        scope="execution",
        config={
            "host": "database.example.com",
            "port": customer.port,
            "dbname": DATABASE,
            "user": customer.reader.user,
            "sslmode": "disable",
        },
        secrets={"password": customer.reader.password},
        address=ADDRESS,
    )
