"""The folder of one runtime.

The kernel drops the lock with its process, however that ends; process ids would mean nothing across containers that
share the directory. A step cannot unlink the lock, as there is no lock file. A creator checks, once it holds the lock,
that the folder still exists.

Timing: next to none for a few files; else a separate process does it, within two seconds.
Model: the worker's process holds a lock (flock) on the folder itself for as long as it needs it.
Guarantee: a folder in use is never swept, nor is one that is just being created.
Failure: a folder that cannot be removed is unlocked, and `resources.runtimes.sweeping` tries again.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from resources.runtimes import emptying
from resources.runtimes.emptying import UNFINISHED, empty, open_folder, unprotect

# Of these folders only: other files of the platform are in the same directory.
PREFIX = "isolane-runtime-"
EMPTY_SECONDS = 2.0  # while a worker's thread waits
# Up to these limits it is done in this process: starting another takes longer than a few files.
_FEW_ENTRIES = 200
_FEW_SECONDS = 0.05
_GRACE_SECONDS = 1.0  # for the process to start and to end
_REASON_MAX = 500
_PROGRAM = emptying.__file__
_RANDOM = 8  # characters that tempfile adds


def folder_name() -> str:
    """Return a path that is as long as those of folders, and is none."""
    return f"{tempfile.gettempdir()}/{PREFIX}{'_' * _RANDOM}"


class RuntimeFolder:
    """A new folder, locked by this process until it is released; safe from any thread."""

    def __init__(self) -> None:
        self.path, lock = _make()
        self._lock: int | None = lock
        self._turn = threading.Lock()
        self._resists = False  # emptying it took too long, or failed

    def wipe(self) -> bool:
        """Empty it; true if it exists and is empty."""
        with self._turn:
            if self._lock is None:
                return False
            self._resists = bool(empty_within(self._lock, EMPTY_SECONDS))
            return not self._resists and is_still(self.path, self._lock)

    def remove(self) -> None:
        """Remove it if that is quick, and no other thread is busy with it. Repeatable."""
        if self._turn.acquire(blocking=False):
            try:
                self._remove(0.0)
            finally:
                self._turn.release()

    def release(self) -> None:
        """Remove it, and release the lock in any case. Repeatable."""
        with self._turn:
            try:
                self._remove(0.0 if self._resists else EMPTY_SECONDS)
            finally:
                self._unlock()

    def _remove(self, seconds: float) -> None:
        if self._lock is not None and not remove_held(self.path, self._lock, seconds):
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)


def remove_held(path: Path, lock: int, seconds: float) -> str:
    """Remove a folder whose lock this process holds; return why it stays, empty if it is gone."""
    if reason := empty_within(lock, seconds):
        return reason
    if not is_still(path, lock):
        return ""  # moved or replaced; its content is gone
    try:
        path.rmdir()
    except PermissionError:
        unprotect(lock)
        path.rmdir()
    return ""


def empty_within(folder: int, seconds: float) -> str:
    """Empty the folder of this descriptor; if there is much in it, by another process within so many seconds.

    Returns why something stays, empty if nothing does.
    """
    reason = empty(folder, entries=_FEW_ENTRIES, seconds=_FEW_SECONDS)
    return _empty_elsewhere(folder, seconds) if reason and seconds > 0 else reason


def _empty_elsewhere(folder: int, seconds: float) -> str:
    """Empty it in another process: a slow deletion or a hanging file system must not block a thread here."""
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            # Isolated and without site: it starts in a fraction of the time.
            [sys.executable, "-I", "-S", _PROGRAM, str(seconds), str(folder)],
            pass_fds=[folder],  # and with it the lock, should this process die meanwhile
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
        )
    except OSError as error:
        return f"no process could be started: {error}"
    try:
        output, _ = process.communicate(timeout=seconds + _GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return UNFINISHED
    finally:
        _end(process)
    if process.returncode:
        return f"emptying it ended with exit status {process.returncode}"
    return output.decode(errors="replace")[:_REASON_MAX]


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None  # noqa: S101 - asked for
    process.stdout.close()
    if process.poll() is None:
        process.kill()
        # One that hangs in the kernel is not waited for; the next start of a process reaps it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)


def lock_unheld(path: Path) -> int | None:
    """Lock a folder that no living process holds; return None if one does, or if it is gone."""
    try:
        lock = open_folder(path)
    except FileNotFoundError:
        return None
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if not is_still(path, lock):
            return None
        undo.pop_all()
    return lock


def is_still(path: Path, lock: int) -> bool:
    """Say whether this path is the folder of this descriptor."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _make() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = _hold(path)
        except BaseException:
            with contextlib.suppress(OSError):
                path.rmdir()
            raise
        if lock is not None:
            return path, lock


def _hold(path: Path) -> int | None:
    try:
        # Python's descriptors are close-on-exec: no runner inherits the lock of a dead worker.
        lock = open_folder(path)
    except FileNotFoundError:  # a sweep was faster
        return None
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for a sweep that is looking at it
        if not is_still(path, lock):
            return None
        undo.pop_all()
    return lock
