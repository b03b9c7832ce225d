"""The whole platform on one machine: servers (embedded or external), web, workers, a provisioner, Flower.

Timing: a long-running process of its own.
Model: sync, single-threaded.
Guarantee: its children end with it, also when it is killed.
Failure: a child that crashes is restarted; one that cannot start ends the stack with its log's tail.
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator import broker_users, env
from orchestrator.cache_url import VARIABLE as CACHE_URL
from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.credentials import remove_credentials, write_credentials
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import choose_port
from orchestrator.embedded.private_files import make_private_directory
from orchestrator.embedded.secrets import Secrets, load_secrets
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.state import (
    StackState,
    own_start_time,
    remove_state,
    stack_lock,
    write_state,
)
from orchestrator.embedded.supervisor import Supervisor
from orchestrator.preflight import external_servers
from orchestrator.processes import (
    BROKER,
    CREDENTIALS,
    DATABASE,
    FLOWER,
    OPERATOR,
    PROCESSES,
    PROVISIONER,
    WEB,
    WORKER,
    WORKERS_DATABASE,
    Process,
    without_credentials,
)

ADDRESS = "127.0.0.1"
LOCAL_HOST = "localhost"
WORKER_STOP_SECONDS = 20.0
READY_SECONDS = 60.0  # for all of them at once on a small machine
# Commands need web's rights and, for a worker started by hand, the workers'.
BROKER_USERS = {
    WEB: broker_users.WEB,
    WORKER: broker_users.WORKER,
    FLOWER: broker_users.FLOWER,
    OPERATOR: broker_users.WORKER,
}
Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """The operator's choices."""

    home: Path
    # Keeps the generated secrets for external servers, because their data stays; for embedded ones `home` does.
    kept_home: Path
    durable: bool = True
    workers: int = 2
    web_port: int = 8000
    flower_port: int = 5555
    # Private networks that resources may be in, as in ISOLANE_RESOURCE_NETWORKS.
    resource_networks: str = ""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack whose servers run and whose other processes can be started."""

    supervisor: Supervisor
    secrets: Secrets
    settings: Mapping[str, str]  # for all processes, without credentials
    credentials: Mapping[Process, Mapping[str, str]]  # the files of each kind of process
    web_url: str
    flower_url: str
    cache_address: str  # without its password
    ports: tuple[int, int] = field(repr=False)
    paths: EmbeddedPaths = field(repr=False)

    def publish_state(self) -> None:
        """Let `isolane status`, `isolane down` and processes started by hand find this stack."""
        write_state(self.paths.state_file, self.describe())

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process started by hand beside the stack."""
        return {**self.settings, **self.credentials[OPERATOR]}

    def environment_of(self, process: Process) -> dict[str, str]:
        """Return the environment of a child: nothing secret, but the files with its credentials."""
        inherited = without_credentials(os.environ, process)
        return {**inherited, **self.settings, **self.credentials[process]}

    def start_processes(self, workers: int) -> None:
        """Start all processes at once; then submissions are accepted and run."""
        web_port, flower_port = self.ports
        names = [f"worker-{number}" for number in range(1, workers + 1)]
        self.supervisor.start(
            self._telling(_web(self.environment_of(WEB), web_port)),
            *(self._worker(self.environment_of(WORKER), name) for name in names),
            self._telling(_provisioner(self.environment_of(PROVISIONER))),
            self._telling(_flower(self.environment_of(FLOWER), flower_port)),
        )

    def _worker(self, environ: Mapping[str, str], name: str) -> ServerProcess:
        ready_file = self.paths.ready_file(name)
        ready_file.unlink(missing_ok=True)

        def placeable() -> bool:
            # A restarted worker finds the file of its predecessor.
            return bool(node_name(ready_file, self.supervisor.pids[name]))

        return ServerProcess(
            name=name,
            argv=(sys.executable, "-m", "celery", "-A", "orchestrator", "--quiet", "worker"),
            env={**environ, "ISOLANE_READY_FILE": str(ready_file)},
            cwd=env.PROJECT_ROOT,
            stop_timeout=WORKER_STOP_SECONDS,
            ready=placeable,
            ready_timeout=READY_SECONDS,
        )

    def _telling(self, child: ServerProcess) -> ServerProcess:
        """Return this child, ready once it has said so itself: what answers at its port may be another program."""
        ready_file = self.paths.ready_file(child.name)
        ready_file.unlink(missing_ok=True)

        def is_ready() -> bool:
            has_told = pid_in(ready_file) == str(self.supervisor.pids[child.name])
            return has_told and (child.ready is None or child.ready())

        environ = {**(child.env or {}), "ISOLANE_READY_FILE": str(ready_file)}
        return replace(child, env=environ, ready=is_ready)

    def node_names(self) -> dict[str, str]:
        """Return the node names of the workers that are ready, by process: runs name their worker by node name."""
        found = {
            name: node_name(self.paths.ready_file(name), pid)
            for name, pid in self.supervisor.pids.items()
        }
        return {name: node for name, node in found.items() if node}

    def describe(self) -> StackState:
        """Return what `isolane status` shows and a process beside the stack needs."""
        return StackState(
            pid=os.getpid(),
            started_at=own_start_time(),
            web_url=self.web_url,
            admin_url=f"{self.web_url}/admin/",
            docs_url=f"{self.web_url}/api/docs/",
            flower_url=self.flower_url,
            cache_address=self.cache_address,
            environment=self.environment,
            children=self.supervisor.pids,
            nodes=self.node_names(),
        )


def pid_in(ready_file: Path) -> str:
    """Return the pid of the process that has written this file when it was ready; empty if none has."""
    try:
        return ready_file.read_text(encoding="utf-8").partition(" ")[0]
    except FileNotFoundError:
        return ""


def node_name(ready_file: Path, pid: int) -> str:
    """Return the name of the worker with this pid, once runs can be placed on it; else an empty text."""
    try:
        written, _, name = ready_file.read_text(encoding="utf-8").partition(" ")
    except FileNotFoundError:
        return ""
    return name if written == str(pid) else ""


@contextmanager
def running_stack(options: StackOptions, report: Report) -> Iterator[Stack]:
    """Start the servers, or check the external ones; everything stops when the block ends."""
    paths = EmbeddedPaths(options.home)
    paths.prepare_home()
    started: list[Stack] = []

    def on_event(name: str, what: str) -> None:
        node = started[0].node_names().get(name) if started and what == "ready" else None
        report(f"{name}: {what} as {node}" if node else f"{name}: {what}")
        if started and paths.state_file.exists():
            started[0].publish_state()  # a restarted child has another pid

    with stack_lock(paths.lock_file):
        if not options.durable:
            paths.clear()
        external = external_servers(os.environ)
        servers = None if external else EmbeddedServers(paths, durable=options.durable)
        secrets = load_secrets(
            EmbeddedPaths(options.kept_home).secrets_file if external else paths.secrets_file
        )
        if servers:
            servers.prepare()
        else:
            paths.prepare()
        with Supervisor(paths.logs, on_event=on_event) as supervisor:
            for child in servers.children() if servers else ():
                supervisor.start(child)
            if servers:
                servers.bootstrap()
            urls = external or _server_urls(servers)
            broker_urls = _broker_urls(servers) if servers else {}
            started.append(_stack(supervisor, secrets, urls, broker_urls, options, report, paths))
            try:
                yield started[0]
            finally:
                started.clear()
                remove_state(paths.state_file)
                remove_credentials(paths.credentials)
        if not options.durable:
            paths.remove()


def _server_urls(servers: EmbeddedServers | None) -> dict[str, str]:
    if servers is None:
        raise RuntimeError("neither embedded nor external servers")
    return {
        "DATABASE_URL": servers.login_url,
        "DATABASE_OWNER_URL": servers.owner_url,
        WORKERS_DATABASE: servers.worker_url,
        "REDIS_URL": servers.redis_url,
        CACHE_URL: servers.cache_url,
    }


def _broker_urls(servers: EmbeddedServers) -> dict[Process, str]:
    return {process: servers.redis_url_of(user) for process, user in BROKER_USERS.items()}


def _stack(
    supervisor: Supervisor,
    secrets: Secrets,
    urls: Mapping[str, str],
    broker_urls: Mapping[Process, str],
    options: StackOptions,
    report: Report,
    paths: EmbeddedPaths,
) -> Stack:
    web_port = _port(options.web_port, "web", report)
    flower_port = _port(options.flower_port, "Flower", report)
    cache_address = urlsplit(urls.get(CACHE_URL, "")).netloc.rpartition("@")[2]
    environment = {
        **platform_environment(
            os.environ, urls, secrets, resource_networks=options.resource_networks
        ),
        "ISOLANE_OWN_ADDRESSES": " ".join(
            filter(None, (f"{ADDRESS}:{web_port}", f"{ADDRESS}:{flower_port}", cache_address))
        ),
    }
    # Another base host need not resolve to this machine; this address always works in an embedded stack.
    host = LOCAL_HOST if environment["BASE_HOST"] == LOCAL_HOST else ADDRESS
    make_private_directory(paths.credentials)
    return Stack(
        supervisor=supervisor,
        secrets=secrets,
        settings={name: environment[name] for name in environment if name not in CREDENTIALS},
        credentials={
            process: write_credentials(
                paths.credentials / process.name,
                credentials_of(process, environment, broker_urls.get(process, "")),
            )
            for process in PROCESSES
        },
        web_url=f"http://{host}:{web_port}",
        flower_url=f"http://{host}:{flower_port}",
        cache_address=cache_address,
        ports=(web_port, flower_port),
        paths=paths,
    )


def platform_environment(
    environ: Mapping[str, str],
    urls: Mapping[str, str],
    secrets: Secrets,
    *,
    resource_networks: str = "",
) -> dict[str, str]:
    """Return the environment of the platform's processes; the operator's values come before generated ones."""
    generated = {
        "SECRET_KEY": secrets.django_secret_key,
        "ENCRYPTION_KEYS": secrets.encryption_key,
        "FLOWER_PASSWORD": secrets.flower_password,
        "BASE_HOST": LOCAL_HOST,
        "ISOLANE_NODE_PACKAGES": "demo_shop hello",
        "ISOLANE_TASK_PACKAGES": "",
        "ISOLANE_NODE_PATHS": str(env.PROJECT_ROOT / "examples"),
        "ISOLANE_RESOURCE_NETWORKS": resource_networks,
    }
    return {
        **urls,
        "ISOLANE_EMBEDDED": "1",
        "DJANGO_SETTINGS_MODULE": "orchestrator.settings",
        **{name: env.variable(environ, name) or value for name, value in generated.items()},
    }


def credentials_of(
    process: Process, environment: Mapping[str, str], broker_url: str
) -> dict[str, str]:
    """Return the credentials of this kind of process, with its own logins where it has them."""
    own = {BROKER: broker_url} if broker_url else {}
    if process is WORKER and (login := environment.get(WORKERS_DATABASE)):
        own[DATABASE] = login
    found = {**environment, **own}
    return {name: found[name] for name in process.credentials if found.get(name)}


def _port(preferred: int, what: str, report: Report) -> int:
    port, taken = choose_port(preferred, ADDRESS)
    if taken:
        report(f"port {preferred} is in use; {what} uses {port}")
    return port


def _provisioner(environ: Mapping[str, str]) -> ServerProcess:
    return ServerProcess(
        name=PROVISIONER.name,
        argv=(sys.executable, "-m", "orchestrator.cli", "provisioner"),
        env=environ,
        cwd=env.PROJECT_ROOT,
        ready_timeout=READY_SECONDS,
    )


def _web(environ: Mapping[str, str], port: int) -> ServerProcess:
    return ServerProcess(
        name="web",
        argv=(
            sys.executable, "-m", "orchestrator.cli", "web", "--address", ADDRESS, "--port", str(port),
        ),
        env=environ,
        cwd=env.PROJECT_ROOT,
        ready=lambda: _answers(f"http://{ADDRESS}:{port}/healthz"),
        ready_timeout=READY_SECONDS,
    )  # fmt: skip


def _flower(environ: Mapping[str, str], port: int) -> ServerProcess:
    return ServerProcess(
        name="flower",
        argv=(
            sys.executable,
            "-m",
            "orchestrator.cli",
            "flower",
            "--address",
            ADDRESS,
            "--port",
            str(port),
        ),
        env=environ,
        cwd=env.PROJECT_ROOT,
        ready=lambda: _answers(f"http://{ADDRESS}:{port}/"),
        ready_timeout=READY_SECONDS,
    )


def _answers(url: str) -> bool:
    """Return True for any answer, also a refusal."""
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - our own address
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
