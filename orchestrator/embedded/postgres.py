"""An embedded PostgreSQL on a Unix socket, with the roles that the platform needs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import psycopg

from orchestrator.embedded import postgres_roles
from orchestrator.embedded.account import Account, server_account
from orchestrator.embedded.child import Child
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.leftovers import wait_unused
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.postgres_install import server_version, usable_install
from orchestrator.embedded.secrets import Secrets

# Part of the socket's name. Said everywhere, because PGPORT in the environment changes the default.
PORT = 5432
PREDECESSOR_TIMEOUT = 30.0  # seconds
POLL_INTERVAL = 0.05  # seconds

# For data that nobody will miss: tests and demos.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """One cluster: made when missing, started by the supervisor, then given its roles."""

    def __init__(
        self,
        paths: EmbeddedPaths,
        secrets: Secrets,
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._paths = paths
        self._secrets = secrets
        self._durable = durable
        self._settings = dict(settings or {})

    @property
    def superuser_url(self) -> str:
        """For bootstrap and tests; the platform itself never needs it."""
        return self._url("postgres", self._secrets.postgres_superuser_password, "postgres")

    @property
    def owner_url(self) -> str:
        """`DATABASE_OWNER_URL`: migrations and provisioning."""
        password = self._secrets.postgres_owner_password
        return self._url(postgres_roles.OWNER, password, postgres_roles.DATABASE)

    @property
    def login_url(self) -> str:
        """`DATABASE_URL`: web and workers."""
        password = self._secrets.postgres_login_password
        return self._url(postgres_roles.LOGIN, password, postgres_roles.DATABASE)

    def prepare(self) -> None:
        """Make the cluster if there is none, and clear what a killed server left behind."""
        data = self._paths.postgres_data
        if not data.exists():
            self._initdb()
        self._check_version(data)
        wait_unused(data, timeout=PREDECESSOR_TIMEOUT)
        # Nobody works here, but the pid in it may belong to another process of the user by now,
        # for which PostgreSQL would refuse to start.
        (data / "postmaster.pid").unlink(missing_ok=True)

    def command(self) -> list[str]:
        """The argv that runs the server in the foreground."""
        settings = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": _list_item(self._paths.postgres_sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            **({} if self._durable else NOT_DURABLE),
            **self._settings,
        }
        argv = [str(self._binary("postgres")), "-D", str(self._paths.postgres_data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return argv

    def child(self) -> Child:
        """The server as the supervisor runs it."""
        account = self._account
        return Child(
            name="postgres",
            argv=tuple(self.command()),
            env=_environment(),
            cwd=self._paths.postgres,
            user=account.uid if account else None,
            group=account.gid if account else None,
            stop_signal=signal.SIGINT,  # fast shutdown: ends the sessions, not only waits for them
            stop_timeout=30,
            death_signal=signal.SIGINT,
            ready=self.is_ready,
            ready_timeout=60,  # recovery after a crash may take a while
        )

    def is_ready(self) -> bool:
        """Whether the server answers a query."""
        try:
            with psycopg.connect(self.superuser_url, connect_timeout=5) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def wait_ready(self, deadline: float) -> None:
        """Return as soon as the server answers; `deadline` as in `time.monotonic`."""
        while not self.is_ready():
            if time.monotonic() > deadline:
                raise EmbeddedError("the embedded PostgreSQL does not answer")
            time.sleep(POLL_INTERVAL)

    def bootstrap(self) -> None:
        """Create the database and roles, or set them right; may run at every start."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            postgres_roles.bootstrap(
                connection,
                owner_password=self._secrets.postgres_owner_password,
                login_password=self._secrets.postgres_login_password,
            )

    @cached_property
    def _account(self) -> Account | None:
        return server_account()

    @cached_property
    def _install(self) -> Path:
        return usable_install(self._paths.postgres, self._account)

    def _binary(self, name: str) -> Path:
        return self._install / "bin" / name

    def _url(self, user: str, password: str, database: str) -> str:
        host = quote(str(self._paths.postgres_sockets))
        return f"postgresql://{user}:{quote(password)}@:{PORT}/{database}?host={host}"

    def _check_version(self, data: Path) -> None:
        made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        installed = server_version(self._install)
        if installed.partition(".")[0] != made_by:
            raise EmbeddedError(
                f"{data} was made by PostgreSQL {made_by}, installed is {installed}: dump it with "
                f"the former version of Isolane, or remove {self._paths.home} with all its data"
            )

    def _initdb(self) -> None:
        """Made beside its place and then renamed, so that a half-made cluster is never used."""
        unfinished = self._paths.postgres / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self._account:
            self._account.take(unfinished, 0o700)
        with self._password_file() as pwfile:
            self._run_initdb(unfinished, pwfile)
        unfinished.rename(self._paths.postgres_data)

    def _run_initdb(self, data: Path, pwfile: Path) -> None:
        account = self._account
        argv = [self._binary("initdb"), "-D", data, f"--pwfile={pwfile}", "--username=postgres"]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-instructions"]
        # The server's own C.UTF-8: the system may have no UTF-8 locale.
        argv += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        completed = subprocess.run(  # noqa: S603 - a binary of our own dependency
            argv if self._durable else [*argv, "--no-sync"],
            cwd=self._paths.postgres,
            env=_environment(),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            umask=0o077,
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise EmbeddedError(f"initdb failed: {completed.stderr.strip()}")

    @contextlib.contextmanager
    def _password_file(self) -> Iterator[Path]:
        path = self._paths.postgres / "pwfile"
        path.unlink(missing_ok=True)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(self._secrets.postgres_superuser_password)
            if self._account:
                self._account.take(path, 0o600)
            yield path
        finally:
            path.unlink(missing_ok=True)


def _environment() -> dict[str, str]:
    """Nothing of ours: PG* variables would change the server, secrets are not its business."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def _list_item(path: Path) -> str:
    escaped = str(path).replace('"', '""')
    return f'"{escaped}"'
