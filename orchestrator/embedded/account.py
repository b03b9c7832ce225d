"""The account that PostgreSQL runs as if this process is root: it refuses to run as root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from orchestrator.embedded.errors import EmbeddedError

NOBODY_UID = 65534


@dataclass(frozen=True, kw_only=True)
class Account:
    """An existing system user; none is ever created."""

    name: str
    uid: int
    gid: int

    def take(self, path: Path, mode: int) -> None:
        """Give `path`, which this process has created, to this account."""
        try:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        except OSError as error:
            raise EmbeddedError(
                f"cannot give {path} to user {self.name} (uid {self.uid}), which PostgreSQL has to "
                f"run as: {error.strerror}. Start Isolane as an ordinary user instead"
            ) from error
        path.chmod(mode)


def server_account() -> Account | None:
    """Return the account of PostgreSQL: `nobody` if this process is root, else None for its own user."""
    if os.geteuid() != 0:
        return None
    entry = _entry_of_nobody()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def _entry_of_nobody() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        pass
    try:
        return pwd.getpwuid(NOBODY_UID)
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL does not run as root, and this system has no user 'nobody' to run it as: "
            "start Isolane as an ordinary user, or set DATABASE_URL"
        ) from None
