"""`python -m tests.integration.isolane.sandbox.paths`: uses files behind Landlock or without it.

Its folder has `readable`, `writable` and `closed`, each with a file, a program and a folder.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isolane.sandbox import landlock
from tests.integration.isolane.sandbox import everyday
from tests.integration.isolane.sandbox.calls import outcome, set_no_new_privs

RNDGETENTCNT = 0x80045200  # asks a device, changes nothing
SYSTEM = (
    "/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev/urandom", "/dev/zero",
    sys.prefix, sys.base_prefix, *sys.path,
)  # fmt: skip


def restrict(home: Path) -> None:
    read = [*SYSTEM, str(home / "readable"), str(home / "alone"), str(home / "missing")]
    write = [str(home / "writable"), "/dev/null", "/dev/shm", str(home / "alone" / "missing")]
    landlock.restrict(read=read, write=write)


def remake(path: Path) -> None:
    """Make one of everything in a folder, and remove it again."""
    (path / "made").mkdir()
    (path / "made" / "link").symlink_to("nowhere")
    os.mkfifo(path / "made" / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path / "made" / "socket"))
    (path / "made" / "file").write_text("x")
    (path / "made" / "file").rename(path / "folder" / "moved")
    (path / "folder" / "moved").unlink()
    for name in ("link", "fifo", "socket"):
        (path / "made" / name).unlink()
    (path / "made").rmdir()


def uses(path: Path) -> dict[str, Callable[[], Any]]:
    """Return all that can be done with a folder and what is in it."""
    file = path / "file"
    return {
        "read": file.read_bytes,
        "list": lambda: list(path.iterdir()),
        "execute": lambda: subprocess.run([path / "program"], check=True),
        "append": lambda: file.open("a").close(),
        "truncate": lambda: os.truncate(file, 1),
        "make": (path / "new").touch,
        "make folder": (path / "folder" / "new").mkdir,
        "remove": (path / "spare").unlink,
        "remake": lambda: remake(path),
    }


def interpret(path: Path) -> None:
    """Give a script to an interpreter, which only reads it."""
    subprocess.run(["/bin/sh", path / "program"], check=True)


def ask_device() -> None:
    with Path("/dev/urandom").open("rb") as device:
        fcntl.ioctl(device, RNDGETENTCNT, b"\0" * 4)


def connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)


def connect_within() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0isolane-within-{os.getpid()}")
        server.listen()
        connect(server.getsockname().decode())


def signal_child() -> None:
    child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    child.send_signal(signal.SIGTERM)
    child.communicate()


def look(home: Path, abstract: str) -> dict[str, Any]:
    folders = ("readable", "writable", "closed")
    others: dict[str, Callable[[], Any]] = {
        "read a file rule": (home / "alone").read_bytes,
        "append to a file rule": lambda: (home / "alone").open("a").close(),
        "interpret what is writable": lambda: interpret(home / "writable"),
        "write to the null device": lambda: Path("/dev/null").write_text("x"),
        "write to the zero device": lambda: Path("/dev/zero").write_text("x"),
        "ask a readable device": ask_device,
        "signal the parent": lambda: os.kill(os.getppid(), 0),
        "signal a child": signal_child,
        "connect to a socket outside": lambda: connect(f"\0{abstract}"),
        "connect to a socket within": connect_within,
    }
    return {
        **{
            folder: {name: outcome(use) for name, use in uses(home / folder).items()}
            for folder in folders
        },
        "others": {name: outcome(use) for name, use in others.items()},
    }


def main() -> None:
    """Set the walls as asked, then do what was asked."""
    asked = json.load(sys.stdin)
    home = Path(asked["home"])
    if asked["prepared"]:
        set_no_new_privs()
    restricted = outcome(lambda: restrict(home)) if asked["restricted"] else "no"
    everyday_failures = everyday.failures() if asked["act"] == "everyday" else {}
    told = look(home, asked["abstract"]) if asked["act"] == "look" else {}
    json.dump({"restricted": restricted, "failures": everyday_failures, **told}, sys.stdout)


if __name__ == "__main__":
    main()
