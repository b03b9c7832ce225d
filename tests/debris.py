"""Files that steps leave in their folders: each way to make deletion hard, by a name."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

DEEP = 1_100  # more than Python's recursion limit


@contextlib.contextmanager
def within(folder: Path) -> Iterator[None]:
    """Make it the working directory: paths of deep directories and sockets are too long."""
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def nest(folder: Path, levels: int = DEEP) -> None:
    """One directory in another, and a file in each hundredth."""
    with within(folder):
        for level in range(levels):
            os.mkdir("d")  # noqa: PTH102 - 1,100 times
            os.chdir("d")
            if level % 100 == 0:
                Path("file").touch()


def fill(folder: Path, number: int = 250) -> None:
    """Many files in one place."""
    for name in range(number):
        (folder / f"file{name}").touch()


def bush(folder: Path) -> None:
    """Some directories in each other, with a file each."""
    for path in ("a/b/c", "a/d", "e"):
        (folder / path).mkdir(parents=True)
        (folder / path / "file").write_text("x")


def _closed(folder: Path) -> None:
    (folder / "d/e").mkdir(parents=True)
    (folder / "d/e/file").touch()
    (folder / "d/e").chmod(0)
    (folder / "d").chmod(0)


def _read_only(folder: Path) -> None:
    (folder / "d/e").mkdir(parents=True)
    (folder / "d").chmod(0o500)


def _itself_closed(folder: Path) -> None:
    (folder / "file").touch()
    folder.chmod(0)


def _odd_names(folder: Path) -> None:
    for name in (b"line\nbreak", b"\xff\xfe", b"-rf", b" ", "ü".encode(), b"n" * 255):
        (folder / os.fsdecode(name)).mkdir()
        (folder / os.fsdecode(name) / os.fsdecode(name)).touch()


def _special(folder: Path) -> None:
    (folder / "d").mkdir()
    os.mkfifo(folder / "d" / "fifo")
    with within(folder / "d"), socket.socket(socket.AF_UNIX) as sock:
        sock.bind("sock")


def _links(folder: Path) -> None:
    (folder / "d").mkdir()
    (folder / "d" / "up").symlink_to(folder)
    (folder / "d" / "out").symlink_to("/")
    (folder / "nowhere").symlink_to("nowhere")


DEBRIS: dict[str, Callable[[Path], None]] = {
    "nothing": lambda folder: None,
    "deep": nest,
    "many files": fill,
    "bushy": bush,
    "mode 000": _closed,
    "read-only": _read_only,
    "itself mode 000": _itself_closed,
    "odd names": _odd_names,
    "fifo and socket": _special,
    "links": _links,
}
