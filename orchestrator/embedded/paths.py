"""The paths of the embedded servers: data, sockets, logs, state and secrets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from orchestrator.embedded.account import Account, server_account
from orchestrator.embedded.private_files import make_private_directory

SYSTEM_ROOT = Path("/var/lib/isolane")
SHORT_ROOT = Path("/tmp")  # noqa: S108 - its directory is checked for owner and mode before use
MAX_SOCKET_PATH = 107  # bytes: sun_path holds 108 with its closing zero
LONGEST_SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True)
class EmbeddedPaths:
    """The paths of one stack; everything is below `home`, except where that cannot work.

    Two things may be elsewhere: sockets, if their path would be too long, and, for root, the files of
    PostgreSQL: it runs as `nobody`, which cannot enter the private `home`. The link `home/postgres` then
    leads there, so a moved project finds its data and a new one gets new data.
    """

    home: Path
    system_root: Path = SYSTEM_ROOT

    def __post_init__(self) -> None:
        # The servers have other working directories than this process.
        object.__setattr__(self, "home", self.home.absolute())

    @property
    def state_file(self) -> Path:
        return self.home / "state.json"

    @property
    def secrets_file(self) -> Path:
        return self.home / "secrets.json"

    @property
    def credentials(self) -> Path:
        """The folder of the credentials: one file for each, per kind of process."""
        return self.home / "credentials"

    @property
    def lock_file(self) -> Path:
        return self.home / "lock"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def ready_file(self, name: str) -> Path:
        """Return the file that the child `name` creates when it is ready."""
        return self.home / f"{name}.ready"

    @property
    def valkey(self) -> Path:
        """Valkey's working directory: its configuration and append-only file."""
        return self.home / "valkey"

    @property
    def run_cache(self) -> Path:
        """The run cache's working directory: its configuration, nothing else."""
        return self.home / "run-cache"

    @property
    def postgres(self) -> Path:
        """The folder of PostgreSQL, its link resolved: valid after `prepare`."""
        return (self.home / "postgres").resolve()

    @property
    def postgres_data(self) -> Path:
        return self.postgres / "data"

    @property
    def customer_data(self) -> Path:
        """The data of the PostgreSQL that plays a customer's, in demos and tests."""
        return self.postgres / "customer"

    @property
    def postgres_sockets(self) -> Path:
        """The folder of PostgreSQL's socket: for root one that `nobody` can reach."""
        return self.postgres / "run" if _is_root() else self.sockets

    @property
    def sockets(self) -> Path:
        """The folder of the other sockets: below `home`, or in a short directory if that is too long."""
        wanted = self.home / "run"
        return wanted if _fits(wanted) else self._short_sockets

    @property
    def _short_sockets(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.home.resolve())).hexdigest()[:10]
        return SHORT_ROOT / f"isolane-{os.geteuid()}-{digest}"

    def prepare(self) -> None:
        """Create what is missing; directories that exist keep their permissions."""
        account = server_account()
        self.prepare_home()
        for directory in (self.logs, self.valkey, self.run_cache, self.sockets):
            make_private_directory(directory)
        if account is None:
            make_private_directory(self.home / "postgres")
        else:
            self._prepare_elsewhere(account)

    def prepare_home(self) -> None:
        """Create only `home`, which the lock needs before anything else is touched."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        make_private_directory(self.home)

    def clear(self) -> None:
        """Remove everything except the lock; nothing of the stack may be running."""
        for place in self._outside_home():
            shutil.rmtree(place)
        for entry in self.home.iterdir() if self.home.exists() else ():
            if entry == self.lock_file:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def remove(self) -> None:
        """Remove everything, also outside `home`; nothing of the stack may be running."""
        self.clear()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.home)

    def _outside_home(self) -> list[Path]:
        places = []
        link = self.home / "postgres"
        if link.is_symlink() and self.postgres.parent == self.system_root.resolve():
            places.append(self.postgres)
        if self.sockets == self._short_sockets:
            places.append(self._short_sockets)
        return [place for place in places if place.exists()]

    def _prepare_elsewhere(self, account: Account) -> None:
        link = self.home / "postgres"
        if link.is_symlink() and not link.exists():
            link.unlink()  # the data was removed: begin anew
        if not link.is_symlink():
            link.symlink_to(self._new_elsewhere())
        run = self.postgres / "run"
        run.mkdir(mode=0o700, exist_ok=True)
        account.take(run, 0o700)

    def _new_elsewhere(self) -> Path:
        """Create a directory with a unique name that `nobody` may enter."""
        if not self.system_root.exists():
            self.system_root.mkdir(parents=True)
            self.system_root.chmod(0o755)
        place = Path(tempfile.mkdtemp(dir=self.system_root, prefix=""))
        place.chmod(0o755)
        # For people who find the directory and wonder what it is.
        (place / "home").write_text(f"{self.home.resolve()}\n", encoding="utf-8")
        return place


def _is_root() -> bool:
    return os.geteuid() == 0


def _fits(directory: Path) -> bool:
    return len(os.fsencode(directory / LONGEST_SOCKET_NAME)) <= MAX_SOCKET_PATH
