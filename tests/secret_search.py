"""A search of a process for secrets: memory, environments, command lines, files and descriptors. Stdlib only.

A needle comes in two halves that are never joined here, so that the search does not find itself: a place has the needle
where the first half is followed by the second.

Timing: a second or two. Model: in the thread that calls, while others go on. Guarantee: it changes nothing, and takes
nothing out of a pipe or socket. Failure: what cannot be read is left out; `searched` counts the rest.
"""

import base64
import contextlib
import ctypes
import fcntl
import gc
import os
import socket
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

LEAST = 12  # bytes of a secret: shorter ones are found by chance
_CHUNK, _PAGE = 1 << 20, 1 << 12
_LARGEST_FILE = 1 << 26
_MOST_FILES = 20_000
_RAM_DISKS = frozenset({"tmpfs", "ramfs"})
_UNREADABLE = ("[vvar", "[vsyscall]", "[vdso]")
_NONBLOCK = 2  # SPLICE_F_NONBLOCK
_LIBC = ctypes.CDLL(None, use_errno=True)

Needle = dict[str, Any]  # form, and two halves in Base64


def needles_of(secret: str, *, users: tuple[str, ...] = ()) -> list[Needle]:
    """Return a secret in all forms in which it may lie about, also as the password of these users.

    Call it where the secret may be, not where it is searched for.
    """
    if len(secret.encode()) < LEAST:
        raise ValueError(f"the secret has fewer than {LEAST} bytes: it would be found by chance")
    forms = dict(_forms("", secret.encode()))
    forms["utf-16"], forms["utf-32"] = secret.encode("utf-16-le"), secret.encode("utf-32-le")
    forms["reversed"] = secret[::-1].encode()
    forms["reversed utf-16"] = secret[::-1].encode("utf-16-le")
    for user in users:
        forms |= dict(_forms(f"of {user} ", f"{user}:{secret}".encode()))
    first_names = {form: name for name, form in reversed(forms.items())}  # equal forms have one
    return [needle_of(name, form) for form, name in first_names.items()]


def _forms(of: str, secret: bytes) -> Iterator[tuple[str, bytes]]:
    yield f"{of}as it is", secret
    yield f"{of}hexadecimal", secret.hex().encode()
    yield f"{of}HEXADECIMAL", secret.hex().upper().encode()
    yield f"{of}URL-encoded", quote(secret, safe="").encode()
    # In the middle of a text Base64 depends on what comes before; the characters at its edges on both sides.
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + secret)
        whole = encoded[4 if before else 0 : (before + len(secret)) // 3 * 4]
        yield f"{of}Base64 after {before}", whole
        yield f"{of}URL-safe Base64 after {before}", whole.translate(bytes.maketrans(b"+/", b"-_"))


def needle_of(form: str, needle: bytes) -> Needle:
    """Return something else to search for, such as a key that was made of a secret."""
    middle = len(needle) // 2
    halves = [base64.b64encode(half).decode() for half in (needle[:middle], needle[middle:])]
    return {"form": form, "halves": halves}


class Search:
    """Looks for needles; `hits` names the places, `searched` counts them by kind, memory in bytes."""

    def __init__(self, needles: list[Needle], folders: Iterable[str] | None = None) -> None:
        self.hits: list[str] = []
        self.searched = dict.fromkeys(("memory", "objects", "processes", "files", "descriptors"), 0)
        self._needles = [
            (needle["form"], *map(base64.b64decode, needle["halves"])) for needle in needles
        ]
        self._folders = _folders() if folders is None else list(folders)
        self._longest = max(len(first) + len(second) for _, first, second in self._needles)

    def everything(self) -> dict[str, Any]:
        """Search all places; return the hits and the counts."""
        for search in (self.memory, self.objects, self.processes, self.files, self.descriptors):
            search()
        return {"hits": sorted(set(self.hits)), "searched": self.searched}

    def memory(self) -> None:
        """Search the memory of this process, but for files that are shown in it as they are."""
        areas = Path("/proc/self/maps").read_text().splitlines()
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            for area in areas:
                addresses, rights, *_ = area.split()
                name = area[73:].strip() or "anonymous"
                is_a_file = name.startswith("/") and "w" not in rights
                if rights.startswith("r") and not is_a_file and not name.startswith(_UNREADABLE):
                    first, last = (int(address, 16) for address in addresses.split("-"))
                    self._area(memory.fileno(), first, last, f"memory {name}")
                    self.searched["memory"] += last - first

    def _area(self, memory: int, first: int, last: int, where: str) -> None:
        for start in range(first, last, _CHUNK):
            size = min(_CHUNK + self._longest, last - start)
            data = _readable(memory, start, size)
            if data.strip(b"\0"):
                self._look(data, where)

    def objects(self) -> None:
        """Search the texts that objects refer to, which says more than an address."""
        texts: defaultdict[str, list[bytes]] = defaultdict(list)
        for holder in gc.get_objects():
            texts[type(holder).__name__].extend(_texts(holder))
        for kind, found in texts.items():
            # All at once, which is quicker, with something in between that no needle has.
            self._look(b"\0\0\0\0\xff".join(found), f"object of a {kind}")
            self.searched["objects"] += len(found)

    def processes(self) -> None:
        """Search environments and command lines of all processes that are shown."""
        own = "\0".join(f"{name}={value}" for name, value in os.environ.items())
        self._look(own.encode(errors="replace"), "os.environ")
        for folder in Path("/proc").glob("[0-9]*"):
            for name in ("environ", "cmdline"):
                if self._file(folder / name, f"{name} of a process"):
                    self.searched["processes"] += 1

    def files(self) -> None:
        """Search all files in folders that programs write to."""
        for path in self._paths():
            if self.searched["files"] >= _MOST_FILES:
                self.hits.append("files: there are more than are searched")
                return
            self.searched["files"] += self._file(path, f"file {path}")

    def _paths(self) -> Iterator[Path]:
        seen: set[str] = set()
        for top in self._folders:
            for folder, folders, names in os.walk(top):
                if folder in seen:
                    folders.clear()
                    continue
                seen.add(folder)
                folders[:] = [name for name in folders if not os.path.ismount(f"{folder}/{name}")]
                yield from (Path(folder, name) for name in names)

    def _file(self, path: Path, where: str) -> bool:
        try:
            kind = path.lstat()
            if not stat.S_ISREG(kind.st_mode) or kind.st_size > _LARGEST_FILE:
                return False
            self._look(path.read_bytes(), where)
        except OSError:
            return False
        return True

    def descriptors(self) -> None:
        """Search what lies in files, pipes and sockets that are open."""
        for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            try:
                kind = os.fstat(number).st_mode
                data = _content(number, kind)
            except (OSError, ValueError):
                continue
            self._look(data, f"descriptor {number}")
            self.searched["descriptors"] += 1

    def _look(self, data: bytes, where: str) -> None:
        for form, first, second in self._needles:
            place = data.find(first)
            while place >= 0:
                rest = place + len(first)
                if data[rest : rest + len(second)] == second:
                    self.hits.append(f"{where}: {form}")
                    break
                place = data.find(first, place + 1)


def _folders() -> list[str]:
    """Return the folders that programs usually write to, and all file systems in RAM."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return ["/tmp", "/var/tmp", "/etc", *(each[1] for each in mounts if each[2] in _RAM_DISKS)]


def _texts(holder: object, *, deep: bool = True) -> Iterator[bytes]:
    for found in gc.get_referents(holder):
        if type(found) is str:
            yield found.encode(errors="replace")
        elif type(found) in (bytes, bytearray):
            yield bytes(found)
        elif deep and type(found) in (dict, tuple) and not gc.is_tracked(found):
            yield from _texts(found, deep=False)  # nobody else leads to these


def _readable(memory: int, start: int, size: int) -> bytes:
    """Read an area; of one that has pages without a content, page by page, what there is."""
    if len(whole := _pages(memory, start, size)) == size:
        return whole
    places = range(start, start + size, _PAGE)
    return b"".join(_pages(memory, place, min(_PAGE, start + size - place)) for place in places)


def _pages(memory: int, start: int, size: int) -> bytes:
    try:
        return os.pread(memory, size, start)
    except (OSError, OverflowError):
        return b""


def _content(number: int, kind: int) -> bytes:
    contents: list[tuple[Callable[[int], bool], Callable[[int], bytes]]] = [
        (stat.S_ISREG, _of_file),
        (stat.S_ISFIFO, _of_pipe),
        (stat.S_ISSOCK, _of_socket),
    ]
    for is_kind, read in contents:
        if is_kind(kind):
            return read(number)
    raise ValueError("nothing lies in it")


def _of_file(number: int) -> bytes:
    return os.pread(number, _LARGEST_FILE, 0)


def _of_socket(number: int) -> bytes:
    with socket.socket(fileno=os.dup(number)) as sock:
        try:
            return sock.recv(_CHUNK, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""


def _of_pipe(number: int) -> bytes:
    """Copy what is in a pipe, also by its writing end, of which a reading one can be opened."""
    opened = os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
    reading, writing = os.pipe()
    try:
        with contextlib.suppress(PermissionError):  # else the first part is copied
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, fcntl.fcntl(opened, fcntl.F_GETPIPE_SZ))
        copied = _LIBC.tee(opened, writing, _CHUNK, _NONBLOCK)
        return os.read(reading, copied) if copied > 0 else b""
    finally:
        for descriptor in (opened, reading, writing):
            os.close(descriptor)
