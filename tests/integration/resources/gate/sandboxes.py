"""Sandboxes with a gate for the tests: runs whose steps use the nodes of this folder."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

from isolane.limits import RunLimits
from isolane.protocol import Grant
from isolane.results import StepResult
from resources.gate.record import ConnectionRecord
from resources.runtimes.base import RunIdentity, Runtime
from resources.runtimes.process import ProcessBackend
from tests.integration.resources.runtimes.conftest import Driver, why_not
from tests.placements import a_placement
from tests.requirements import give_up
from tests.tls_servers.server import TlsServer

NAME = "server.example.test"  # known to no DNS
CACHE_USER = "run-of-the-gate"
SILENT = "/upload"  # a path below which the servers of HTTP do not echo
SECRET = "s3cret-of-the-remote-server"
NODES = (
    "tests.integration.resources.gate.server_nodes",
    "tests.integration.isolane.gate.secret_nodes",
)
CONNECTIONS = 4
_LIMITS = RunLimits(ram_mb=512, processes=64, disk_mb=16, connections=CONNECTIONS)


@dataclass(frozen=True)
class SandboxRun:
    """A run in a sandbox; `records` is whole when its block has ended."""

    runtime: Runtime
    records: list[ConnectionRecord] = field(default_factory=list)

    def result(self, uses: str, **parameters: Any) -> StepResult:
        """Run a step to whatever end."""
        return Driver(self.runtime).run(uses, parameters)

    def output(self, uses: str, **parameters: Any) -> Any:
        """Run a step that must succeed."""
        return Driver(self.runtime).output(uses, parameters)


class Sandboxes:
    """Starts runs with grants."""

    def __init__(self, backend: ProcessBackend) -> None:
        self._backend = backend
        self._numbers = count()

    @classmethod
    @contextlib.contextmanager
    def started(cls) -> Iterator[Self]:
        """Stop them when the block ends."""
        if reason := why_not(ProcessBackend):
            give_up(f"the level process is not available: {reason}")
        backend = ProcessBackend(level="process", size=2, packages=NODES)
        try:
            yield cls(backend)
        finally:
            backend.stop()

    @contextlib.contextmanager
    def run(self, *grants: Grant, tenant_id: int = 1) -> Iterator[SandboxRun]:
        """Run steps with these resources until the block ends."""
        records: list[ConnectionRecord] = []
        runtime = self._backend.start(
            a_placement(f"gate {next(self._numbers)}", tenant_id=tenant_id),
            identity=RunIdentity(tenant=f"tenant-{tenant_id}"),
            limits=_LIMITS,
            grants=grants,
            on_connection=records.append,
        )
        try:
            runtime.open()
            yield SandboxRun(runtime, records)
        finally:
            runtime.close(5)


def reasons(records: Sequence[ConnectionRecord]) -> list[str]:
    """Return why these connections ended."""
    return [record.reason.value for record in records]


def http_grant(server: TlsServer, ca: str, *, secret: str = SECRET, **config: Any) -> Grant:
    """An HTTP service with a bearer token."""
    name = config.pop("name", NAME)
    url = {"base_url": f"https://{name}:{server.port}", "auth": "bearer", "ca": ca}
    return _grant("http_api", server, url | config, {"token": secret})


def model_grant(server: TlsServer, ca: str, *, secret: str = SECRET, **config: Any) -> Grant:
    """A language model with a key."""
    name = config.pop("name", NAME)
    url = {"provider": "openai", "model": "m", "base_url": f"https://{name}:{server.port}{SILENT}"}
    return _grant("model", server, {**url, "ca": ca, **config}, {"api_key": secret})


def database_grant(
    server: TlsServer, ca: str, *, login: tuple[str, str, str], **config: Any
) -> Grant:
    """A database; `login` is its name, user and password."""
    dbname, user, password = login
    place = {"host": config.pop("name", NAME), "port": server.port, "dbname": dbname, "user": user}
    safety = {"sslmode": "verify-full", "ca": ca}
    return _grant("database", server, place | safety | config, {"password": password})


def cache_grant(
    server: TlsServer, ca: str, *, user: str = CACHE_USER, secret: str = SECRET, **config: Any
) -> Grant:
    """A run cache as its issuer grants it."""
    place = {"host": config.pop("name", NAME), "port": server.port, "tls": True, "ca": ca}
    login = {"username": user, "prefix": "run:"}
    return _grant("cache", server, place | login | config, {"password": secret})


def _grant(kind: str, server: TlsServer, config: dict[str, Any], secrets: dict[str, str]) -> Grant:
    return Grant(
        name=kind, type=kind, definition=kind, scope="execution", config=config, secrets=secrets, address=server.host
    )  # fmt: skip
