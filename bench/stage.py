"""Servers, workers and drivers of all contenders, for as long as the benchmark runs.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: what it starts ends with it, also when it is killed; then only its directory stays.
Failure: a child that cannot start ends the benchmark with the tail of its log.
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
    """Running servers, workers and drivers; drivers by name of contender."""

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
    """Start everything in a new directory; PostgreSQL and Valkey are durable, the same for all."""
    statistics = STATISTICS if profile else None
    with running_servers(statistics) as (servers, supervisor), ExitStack() as stack:
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
def running_servers(
    postgres_settings: Mapping[str, str] | None = None,
) -> Iterator[tuple[EmbeddedServers, Supervisor]]:
    """Start the servers only; add the workers' logs to the error of a contender that fails."""
    kept = env.home(os.environ)
    EmbeddedPaths(kept).prepare_home()
    # Not in the system's temporary directory: fsync may cost nothing there.
    with tempfile.TemporaryDirectory(dir=kept, prefix="bench-") as home:
        paths = EmbeddedPaths(Path(home) / "home")
        servers = EmbeddedServers(paths, durable=True, postgres_settings=postgres_settings)
        try:
            servers.prepare()
            with Supervisor(paths.logs) as supervisor:
                for server in servers.children():
                    supervisor.start(server)
                servers.bootstrap()
                try:
                    yield servers, supervisor
                except ContenderFailed as failed:
                    # The directory is removed with its logs.
                    raise ContenderFailed(f"{failed}\n{_log_tails(paths.logs)}") from None
        finally:
            paths.remove()


def _log_tails(logs: Path) -> str:
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
    """Return the environment variables of the platform's processes."""
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
    """Return one prefork worker with two processes, or two of the platform: two cores for each contender."""
    workers = [
        _worker(f"{name}-worker", PREFORK_APPS[name], _environ(name, servers), *PREFORK)
        for name in names
        if name in PREFORK_APPS
    ]
    if PLATFORM.intersection(names):
        workers += platform_workers(_environ("chain", servers), profiles)
    return workers


def platform_workers(environ: Mapping[str, str], profiles: Path | None) -> list[ServerProcess]:
    """Return workers of the platform; they sample themselves if there is a directory for profiles."""
    sampled = {environment.PROFILES: str(profiles)} if profiles else {}
    app = "bench.sampled" if profiles else "orchestrator"
    return [
        _worker(f"isolane-worker-{number}", app, {**environ, **sampled})
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
