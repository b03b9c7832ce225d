"""The data directory of an embedded PostgreSQL, and the server on it.

Timing: before the server is first started; creating a cluster takes seconds, two minutes at most.
Model: sync.
Guarantee: idempotent; it is created under another name and renamed, so an interrupted creation is repeated.
Failure: EmbeddedError with the message of initdb.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.embedded.account import Account
from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.postgres_install import server_version
from orchestrator.embedded.predecessors import wait_unused
from orchestrator.embedded.private_files import replace_private

# Not the environment of this process: PG* variables would change the server, and it must not see secrets.
SERVER_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
INITDB_TIMEOUT = 120.0  # seconds
PREDECESSOR_TIMEOUT = 30.0  # seconds

# For data that may be lost: tests and demos.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A data directory, its binaries, and its account (None: that of this process)."""

    data: Path
    install: Path
    account: Account | None

    def prepare(self, superuser_password: str, *, durable: bool) -> None:
        """Create the cluster if there is none, and clear what a killed server left behind."""
        if not self.data.exists():
            self.create(superuser_password, durable=durable)
        self.check_version()
        wait_unused(self.data, "postgres", timeout=PREDECESSOR_TIMEOUT)
        # No server runs here, but the pid in the file may belong to another process by now, and
        # PostgreSQL would refuse to start.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the data, once a predecessor is gone; no error if there is none."""
        wait_unused(self.data, "postgres", timeout=PREDECESSOR_TIMEOUT)
        if self.data.exists():
            shutil.rmtree(self.data)

    def command(self, settings: Mapping[str, str]) -> list[str]:
        """Return the argv that runs the server in the foreground."""
        argv = [str(self.install / "bin" / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return argv

    def child(
        self, name: str, settings: Mapping[str, str], *, ready: Callable[[], bool]
    ) -> ServerProcess:
        """Return the server process, for the supervisor."""
        return ServerProcess(
            name=name,
            argv=tuple(self.command(settings)),
            env=SERVER_ENVIRONMENT,
            cwd=self.data.parent,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            stop_signal=signal.SIGINT,  # fast shutdown: ends the sessions instead of waiting for them
            stop_timeout=30,
            death_signal=signal.SIGINT,
            ready=ready,
            ready_timeout=60,  # recovery after a crash may take a while
        )

    def check_version(self) -> None:
        """Raise if the data is of another major version, which the server cannot read."""
        made_by = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        installed = server_version(self.install)
        if installed.partition(".")[0] != made_by:
            raise EmbeddedError(
                f"{self.data} was created by PostgreSQL {made_by}, installed is {installed}: dump it "
                f"with the old version, or remove the directory to begin anew"
            )

    def create(self, superuser_password: str, *, durable: bool) -> None:
        """Create it under another name and rename it, so that an incomplete cluster is never used."""
        unfinished = self.data.with_name(f"{self.data.name}.new")
        wait_unused(unfinished, "postgres", timeout=INITDB_TIMEOUT)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._hand_over(unfinished, 0o700)
        with self._password_file(superuser_password) as pwfile:
            self._initdb(unfinished, pwfile, sync=durable)
        unfinished.rename(self.data)

    def _initdb(self, target: Path, pwfile: Path, *, sync: bool) -> None:
        argv = [str(self.install / "bin" / "initdb"), "-D", str(target), f"--pwfile={pwfile}"]
        argv += ["--username=postgres", "--auth=scram-sha-256", "--no-instructions"]
        # The server's own C.UTF-8: the system may have no UTF-8 locale.
        argv += ["--encoding=UTF8", "--locale=C"]
        argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        completed = subprocess.run(  # noqa: S603 - a binary of our own dependency
            argv if sync else [*argv, "--no-sync"],
            cwd=target.parent,
            env=SERVER_ENVIRONMENT,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=INITDB_TIMEOUT,
        )
        if completed.returncode:
            raise EmbeddedError(f"initdb failed: {completed.stderr.strip()}")

    @contextlib.contextmanager
    def _password_file(self, password: str) -> Iterator[Path]:
        path = self.data.with_name("pwfile")
        replace_private(path, password)
        try:
            self._hand_over(path, 0o600)
            yield path
        finally:
            path.unlink()

    def _hand_over(self, path: Path, mode: int) -> None:
        if self.account:
            self.account.take(path, mode)
