"""Servers, workers and drivers of all contenders, for as long as the benchmark runs.

Timing: a long-running process of its own. Model: sync, main thread. Guarantee: what it starts ends with it, also when
it is killed; its directory goes, unless it is killed. Failure: a child that cannot start ends it with its log's tail.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench import environment
from bench.contenders import PLATFORM
from bench.driver import ContenderFailed, Driver
from orchestrator import env
from orchestrator.embedded.child import ServerProcess, log_tail
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.stack import EmbeddedServers
from orchestrator.embedded.supervisor import Supervisor

DURABLE_DATABASE = "bench_durable"
PREFORK_APPS = {
    "plain": "bench.contenders.plain_app",
    "durable": "bench.contenders.durable.app",
}
PREFORK = ("--pool", "prefork", "--concurrency", "2")
PLATFORM_WORKERS = 2
STOP_SECONDS = 20.0
STATISTICS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_planning": "on",
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Everything runs; drivers by the names of their contenders."""

    servers: EmbeddedServers
    supervisor: Supervisor
    drivers: Mapping[str, Driver]

    @property
    def postgres_version(self) -> str:
        with psycopg.connect(self.servers.superuser_url) as connection:
            return str(connection.info.parameter_status("server_version"))

    @property
    def valkey_version(self) -> str:
        with redis.Redis.from_url(self.servers.redis_url) as client:
            return str(client.info("server")["valkey_version"])


@contextmanager
def stage(names: Sequence[str], *, profile: bool = False) -> Iterator[Stage]:
    """Start it all in a directory of its own; PostgreSQL and Valkey are durable, the same for all."""
    with running_servers(profile=profile) as (servers, supervisor), ExitStack() as stack:
        logs = servers.paths.logs
        drivers = {
            name: stack.enter_context(Driver(name, _environ(name, servers), logs)) for name in names
        }
        _create_database(servers)
        for driver in drivers.values():
            driver.call("prepare")
        for worker in _workers(names, servers, logs if profile else None):
            supervisor.start(worker)
        yield Stage(servers=servers, supervisor=supervisor, drivers=drivers)


@contextmanager
def running_servers(*, profile: bool = False) -> Iterator[tuple[EmbeddedServers, Supervisor]]:
    """The servers alone, and who starts what else is needed; a contender's failure is told with the workers' logs."""
    kept = env.home(os.environ)
    EmbeddedPaths(kept).prepare_home()
    # Not in the system's own place for such directories: there fsync may cost nothing.
    with tempfile.TemporaryDirectory(dir=kept, prefix="bench-") as home:
        paths = EmbeddedPaths(Path(home) / "home")
        servers = EmbeddedServers(
            paths, durable=True, postgres_settings=STATISTICS if profile else None
        )
        try:
            servers.prepare()
            with Supervisor(paths.logs) as supervisor:
                for server in servers.children():
                    supervisor.start(server)
                servers.bootstrap()
                try:
                    yield servers, supervisor
                except ContenderFailed as failed:
                    # The logs go with the directory.
                    raise ContenderFailed(f"{failed}\n{_last_words(paths.logs)}") from None
        finally:
            paths.remove()


def _last_words(logs: Path) -> str:
    workers = sorted(path.stem for path in logs.glob("*-worker*.log"))
    return "\n".join(f"--- {name}\n{log_tail(logs, name)}" for name in workers)


def _environ(name: str, servers: EmbeddedServers) -> dict[str, str]:
    return {**environment.clean(os.environ), **_own(name, servers)}


def _own(name: str, servers: EmbeddedServers) -> dict[str, str]:
    if name == "plain":
        return environment.plain(servers.redis_url)
    if name == "durable":
        return environment.durable(servers.redis_url, _durable_url(servers))
    return platform_environ(servers)


def platform_environ(servers: EmbeddedServers) -> dict[str, str]:
    """What the platform's processes find, beside what is the machine's."""
    return environment.platform(
        redis=servers.redis_url,
        login=servers.login_url,
        owner=servers.owner_url,
        secret_key=servers.secrets.django_secret_key,
        encryption_key=servers.secrets.encryption_key,
    )


def _durable_url(servers: EmbeddedServers) -> str:
    return make_conninfo(servers.owner_url, dbname=DURABLE_DATABASE)


def _create_database(servers: EmbeddedServers) -> None:
    owner = conninfo_to_dict(servers.owner_url)["user"]
    with psycopg.connect(servers.superuser_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DURABLE_DATABASE} OWNER {owner}")


def _workers(
    names: Sequence[str], servers: EmbeddedServers, profiles: Path | None
) -> list[ServerProcess]:
    """One prefork worker with two processes, or two of the platform's: two cores for each."""
    workers = [
        _worker(f"{name}-worker", PREFORK_APPS[name], _environ(name, servers), *PREFORK)
        for name in names
        if name in PREFORK_APPS
    ]
    if PLATFORM.intersection(names):
        workers += platform_workers(_environ("chain", servers), profiles)
    return workers


def platform_workers(environ: Mapping[str, str], profiles: Path | None) -> list[ServerProcess]:
    """The platform's, which look at themselves where they are told a place for what they see."""
    seen = {environment.PROFILES: str(profiles)} if profiles else {}
    app = "bench.sampled" if profiles else "orchestrator"
    return [
        _worker(f"isolane-worker-{number}", app, {**environ, **seen})
        for number in range(PLATFORM_WORKERS)
    ]


def _worker(name: str, app: str, environ: Mapping[str, str], *options: str) -> ServerProcess:
    return ServerProcess(
        name=name,
        argv=(
            sys.executable, "-m", "celery", "-A", app, "--quiet", "worker",
            "--hostname", f"{name}@bench", *options,
        ),
        env=environ,
        cwd=env.PROJECT_ROOT,
        stop_timeout=STOP_SECONDS,
        restart=False,
    )  # fmt: skip
