"""Emptying a folder, whatever a step left in it; also a program: `python emptying.py SECONDS DESCRIPTOR`.

A directory that is not empty is moved up into the folder itself and emptied there. So there is no recursion and no
stack, a handful of descriptors is enough for any depth, and another try continues where the last one ended.

Timing: until the folder is empty, nothing more can be removed, or the limit of entries or time is reached.
Model: sync; all names are relative to open directories, links are removed and never followed.
Guarantee: nothing outside the folder is touched, nor anything on a file system that is mounted inside it.
Failure: entries that cannot be removed are skipped, and one reason is returned.
"""

import contextlib
import errno
import fcntl
import math
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator

UNFINISHED = "not finished in time"
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
# FS_IOC_GETFLAGS and FS_IOC_SETFLAGS of <linux/fs.h>.
_FLAGS = struct.Struct("l")
_GET_FLAGS = 0x80006601 | _FLAGS.size << 16
_SET_FLAGS = 0x40006602 | _FLAGS.size << 16
_PROTECTED = 0x10 | 0x20  # FS_IMMUTABLE_FL, FS_APPEND_FL


def empty(folder: int, *, entries: float = math.inf, seconds: float = math.inf) -> str:
    """Empty the folder of this descriptor; return why something stays, empty if nothing does."""
    return _Emptying(folder, entries=entries, until=time.monotonic() + seconds).run()


def unprotect(descriptor: int) -> None:
    """Remove protections against the owner, as far as possible: mode 000, immutable, append-only."""
    with contextlib.suppress(OSError):
        (flags,) = _FLAGS.unpack(fcntl.ioctl(descriptor, _GET_FLAGS, _FLAGS.pack(0)))
        if flags & _PROTECTED:
            fcntl.ioctl(descriptor, _SET_FLAGS, _FLAGS.pack(flags & ~_PROTECTED))
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, stat.S_IRWXU)


def open_folder(name: str | os.PathLike[str], *, parent: int | None = None) -> int:
    """Open a directory, never through a link; if its mode forbids that, its owner changes the mode first."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        # By a handle: chmod by name would follow a link.
        with _closing(os.open(name, flags | os.O_PATH, dir_fd=parent)) as handle:
            return _reopened(f"/proc/self/fd/{handle}")


class _Unfinished(Exception):
    """A limit of entries or time is reached."""


class _Emptying:
    def __init__(self, folder: int, *, entries: float, until: float) -> None:
        self._folder = folder
        self._entries = entries
        self._until = until
        self._mount = ""  # of the folder, once it is needed
        self._reason = ""

    def run(self) -> str:
        """Pass over the folder until a pass changes nothing; return the reason if something stays."""
        try:
            while True:
                self._reason = ""
                if not self._pass(self._folder):
                    return self._reason
        except _Unfinished:
            return UNFINISHED

    def _pass(self, parent: int) -> bool:
        """Remove every entry, or move it up; true if that changed anything."""
        changed = False
        with os.scandir(parent) as found:
            for entry in found:
                self._entries -= 1
                if self._entries < 0 or time.monotonic() >= self._until:
                    raise _Unfinished
                try:
                    changed |= self._take(parent, entry)
                except OSError as error:
                    self._reason = f"{entry.name!a}: {os.strerror(error.errno or 0)}"
        return changed

    def _take(self, parent: int, entry: "os.DirEntry[str]") -> bool:
        is_folder = entry.is_dir(follow_symlinks=False)
        try:
            # A mount point gives EBUSY: a directory that is not empty here is really the step's own.
            self._insist(os.rmdir if is_folder else os.unlink, parent, entry.name)
        except OSError as error:
            if not is_folder or error.errno not in _NOT_EMPTY:
                raise
        else:
            return True
        if parent != self._folder:
            self._insist(self._move_up, parent, entry.name)
            return True
        with self._opened(parent, entry.name) as folder:
            changed = self._pass(folder)
        if not changed and not self._reason:
            raise OSError(errno.ENOTEMPTY, "nothing in it can be seen")
        return changed

    def _insist(self, change: Callable[..., None], parent: int, name: str) -> None:
        """Change an entry, if need be after removing its own and its directory's protection."""
        with contextlib.suppress(FileNotFoundError):
            try:
                change(name, dir_fd=parent)
            except PermissionError:
                unprotect(parent)
                unprotect(self._folder)
                with contextlib.suppress(OSError), self._opened(parent, name) as entry:
                    unprotect(entry)
                change(name, dir_fd=parent)

    def _move_up(self, name: str, *, dir_fd: int) -> None:
        # A name that no step has taken.
        os.rename(name, os.urandom(16).hex(), src_dir_fd=dir_fd, dst_dir_fd=self._folder)

    @contextlib.contextmanager
    def _opened(self, parent: int, name: str) -> Iterator[int]:
        """Open a directory or plain file; opening anything else may block, or have effects."""
        with _closing(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=parent)) as handle:
            self._mount = self._mount or _mount_of(self._folder)
            if _mount_of(handle) != self._mount:
                raise OSError(errno.EBUSY, "mounted")
            mode = os.fstat(handle).st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                raise OSError(errno.EPERM, "neither a directory nor a plain file")
            with _closing(_reopened(f"/proc/self/fd/{handle}")) as entry:
                yield entry


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _reopened(handle: str) -> int:
    try:
        return os.open(handle, os.O_RDONLY)
    except PermissionError:
        os.chmod(handle, stat.S_IRWXU)  # noqa: PTH101 - a name in /proc, not a path
        return os.open(handle, os.O_RDONLY)


def _mount_of(descriptor: int) -> str:
    """Return the mount of a descriptor; its device number would not reveal a bind mount of the same file system."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as info:  # noqa: PTH123
        return next((line for line in info if line.startswith("mnt_id:")), "")


def main() -> None:
    """Empty the folder of an inherited descriptor, and print why something stays."""
    seconds, folder = float(sys.argv[1]), int(sys.argv[2])
    os.nice(10)
    sys.stdout.write(empty(folder, seconds=seconds))


if __name__ == "__main__":
    main()
