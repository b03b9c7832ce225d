"""The folder of one runtime, and the end of folders whose worker died.

Timing: making one takes no time worth naming; a sweep looks once at the temporary directory.
Model: the worker's process holds a lock (flock) on the folder itself for as long as it needs it.
The kernel drops it with the process, however that ends; ids of processes would mean nothing
across containers that share the directory. The step can unlink no lock, as there is no file.
Guarantee: a folder in use is never swept, nor is one that is just being made: whoever makes it
looks, once the lock is held, whether it is still there.
Failure: what cannot be locked or removed stays; the next sweep tries again.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from resources.runtimes.processes import end_strays

# Of folders made here only: other things of the platform lie in the same directory.
PREFIX = "isolane-runtime-"


class RuntimeFolder:
    """A new folder, locked by this process until it is removed."""

    def __init__(self) -> None:
        self.path, lock = _make()
        self._lock: int | None = lock

    def wipe(self) -> bool:
        """Empty it; say whether it is there and empty."""
        try:
            for entry in self.path.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it and give up the lock. Repeatable, by one thread at a time."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove this user's folders that no living process holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # gone meanwhile, no folder, or in use
            if path.lstat().st_uid == os.geteuid():
                remove_unheld(path)


def _make() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if (lock := _hold(path)) is not None:
            return path, lock


def _hold(path: Path) -> int | None:
    try:
        lock = _open(path)
    except FileNotFoundError:  # a sweep was faster
        return None
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for a sweep that is looking at it
        if not _is_still(path, lock):
            return None
        stack.pop_all()
    return lock


def remove_unheld(path: Path) -> None:
    """Remove a folder, and end what still uses it, unless its worker lives; raises OSError if it does."""
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(path, lock):
            # A worker that was killed while it ended a runner has left it stopped: it sees no end of its stream.
            end_strays(path)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    # Python's descriptors are close-on-exec: no child holds the lock on behalf of a dead worker.
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _is_still(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(lock))
    except FileNotFoundError:
        return False
