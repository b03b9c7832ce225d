"""Files and directories that only their owner may read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from orchestrator.embedded.errors import EmbeddedError


def replace_private(path: Path, text: str) -> None:
    """Write `text` to `path` (0600); a reader sees the old content or the new, never half."""
    with _written_beside(path, text) as temporary:
        temporary.replace(path)


def create_private(path: Path, text: str) -> bool:
    """Write a new file like `replace_private`; false if there is one already, which then stays."""
    with _written_beside(path, text) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        return True


def make_private_directory(path: Path) -> None:
    """Create `path` (0700), or accept it if it belongs to this user and is closed to others."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    # lstat: in a shared directory another user may have put a link here before.
    if not path.is_dir() or path.is_symlink():
        raise EmbeddedError(f"{path} must be a directory")
    if found.st_uid != os.geteuid():
        raise EmbeddedError(
            f"{path} belongs to uid {found.st_uid}, this process runs as uid {os.geteuid()}: "
            f"run as that user, or remove it"
        )
    if found.st_mode & 0o077:
        raise EmbeddedError(f"{path} is open to other users: chmod 700 {path}")


@contextlib.contextmanager
def _written_beside(path: Path, text: str) -> Iterator[Path]:
    """Write a synced temporary file (0600) in the directory of `path`; remove it if it still exists."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
