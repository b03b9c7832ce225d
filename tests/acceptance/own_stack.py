"""A platform of a test's own, whose servers may go away: PostgreSQL, Redis, web and one worker."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg

from orchestrator.broker_users import WEB, WORKER
from orchestrator.embedded.child import ChildProcess, ServerProcess, log_path, log_tail
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import ReservedPort
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.stack import platform_environment
from tests.waiting import wait_for

ROOT = Path(__file__).parent.parent.parent
TENANTS = ("acme", "globex")
ADDRESS = "127.0.0.1"
RUNS = "/api/v1/executions"
ENDED = {"succeeded", "failed", "cancelled", "timed_out"}
TERMINATE = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE usename IN ('isolane_login', 'isolane_worker') AND pid <> pg_backend_pid()"""


class Member:
    """One process of the platform."""

    def __init__(self, child: ServerProcess, logs: Path, *, ready_file: Path | None = None) -> None:
        self.child = child
        self._logs = logs
        self._ready_file = ready_file
        self._process: ChildProcess | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        process = self._process = ChildProcess(self.child, self._logs)

        def ready() -> bool:
            assert not process.has_ended(), log_tail(self._logs, self.child.name)
            if self._ready_file is not None:
                return self._ready_file.exists()
            return self.child.ready is None or self.child.ready()

        wait_for(ready, f"{self.child.name} to be ready", self.child.ready_timeout)

    @property
    def pid(self) -> int:
        """Of the process as it is now."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """As an operator does; its exit status, which says that it was killed if it took too long."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.end(hastened=lambda: False)
        return process.reap()

    def log(self) -> str:
        """Return its log."""
        return log_path(self._logs, self.child.name).read_text()

    @contextmanager
    def away(self) -> Iterator[None]:
        """It is stopped meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It answers nothing meanwhile, though the kernel takes connections and bytes for it."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)


@dataclass(frozen=True, kw_only=True)
class OwnStack:
    """Everything runs; `keys` has one API key per tenant."""

    postgres: Member
    redis: Member
    web: Member
    worker: Member
    url: str
    superuser_url: str
    keys: Mapping[str, str]

    def browser(self) -> httpx.Client:
        """Somebody who keeps cookies."""
        return httpx.Client(base_url=self.url, timeout=20, verify=False)

    def call(
        self, tenant: str, method: str, path: str, *, json: Any = None, **headers: str
    ) -> httpx.Response:
        """One request with the tenant's key, over a connection of its own."""
        sent = {"Authorization": f"Bearer {self.keys[tenant]}", **headers}
        with self.browser() as browser:
            return browser.request(method, path, json=json, headers=sent)

    def run(self, tenant: str, run: str) -> dict[str, Any]:
        """A run as the API shows it."""
        answer = self.call(tenant, "GET", f"{RUNS}/{run}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def ended(self, tenant: str, run: str, seconds: float = 20) -> dict[str, Any]:
        """Wait for the end of a run."""

        def end() -> dict[str, Any] | None:
            found = self.run(tenant, run)
            return found if found["state"] in ENDED else None

        return wait_for(end, f"run {run} of {tenant} to end", seconds)

    def server(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A look from the database's side."""
        return psycopg.connect(self.superuser_url, dbname="isolane", autocommit=True)

    def hang_up(self) -> int:
        """End every connection of the platform at the server; how many there were."""
        with self.server() as server:
            row = server.execute(TERMINATE).fetchone()
        return row[0] if row else 0


@contextmanager
def own_stack(home: Path, **settings: str) -> Iterator[OwnStack]:
    """Started from nothing, and all gone at the end."""
    paths = EmbeddedPaths(home)
    with ExitStack() as stack:
        stack.callback(paths.remove)
        servers = EmbeddedServers(paths, durable=False)
        servers.prepare()
        member = partial(_member, stack, paths.logs)
        postgres = member(servers.postgres.child())
        redis = member(servers.valkey.child())
        servers.bootstrap()
        environ = _environment(servers, settings)
        keys = _furnish(
            {
                **environ,
                "DATABASE_OWNER_URL": servers.owner_url,
                "DATABASE_WORKER_URL": servers.worker_url,
            }
        )
        port = ReservedPort()
        ready_file = paths.ready_file("worker")
        yield OwnStack(
            postgres=postgres,
            redis=redis,
            web=member(_web({**environ, "REDIS_URL": servers.redis_url_of(WEB)}, port.number)),
            worker=member(
                _worker({**environ, "DATABASE_URL": servers.worker_url}, ready_file),
                ready_file=ready_file,
            ),
            url=f"http://{ADDRESS}:{port.number}",
            superuser_url=servers.superuser_url,
            keys=keys,
        )


def _member(stack: ExitStack, logs: Path, child: ServerProcess, **options: Any) -> Member:
    member = Member(child, logs, **options)
    stack.callback(member.stop)
    member.start()
    return member


def _environment(servers: EmbeddedServers, settings: Mapping[str, str]) -> dict[str, str]:
    urls = {
        "DATABASE_URL": servers.login_url,
        "REDIS_URL": servers.redis_url_of(WORKER),
    }
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    ours = platform_environment({}, urls, servers.secrets)
    nodes = {"ISOLANE_NODE_PACKAGES": "tests.acceptance.nodes", "ISOLANE_NODE_PATHS": str(ROOT)}
    return {**kept, **ours, **nodes, **settings}


def _furnish(environ: Mapping[str, str]) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.acceptance.furnish", *TENANTS]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    keys: dict[str, str] = json.loads(done.stdout)
    return keys


def _web(environ: Mapping[str, str], port: int) -> ServerProcess:
    return ServerProcess(
        name="web",
        argv=(
            sys.executable,
            "-m",
            "orchestrator.cli",
            "web",
            "--address",
            ADDRESS,
            "--port",
            str(port),
        ),
        env=environ,
        cwd=ROOT,
        ready=partial(_answers, f"http://{ADDRESS}:{port}/healthz"),
    )


def _worker(environ: Mapping[str, str], ready_file: Path) -> ServerProcess:
    return ServerProcess(
        name="worker",
        argv=(sys.executable, "-m", "celery", "-A", "orchestrator", "--quiet", "worker"),
        env={**environ, "ISOLANE_READY_FILE": str(ready_file)},
        cwd=ROOT,
        stop_timeout=20,
    )


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1).status_code == 200
    except httpx.HTTPError:
        return False
