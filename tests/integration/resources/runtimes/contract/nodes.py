"""Nodes that start, use and look for what the worker must find, end or hide."""

import contextlib
import gc
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from isolane import NodeContext, node

_kept: list[bytes] = []


@node("contract.start_processes")
def start_processes(ctx: NodeContext, *, child: str, daemon: str, seconds: float = 0.0) -> None:
    """Start a child, and a process that leaves parent, session and group; both sleep so many seconds."""
    subprocess.Popen(["sleep", child])
    if os.fork() == 0:  # noqa: TID251 - what a step may do
        os.setsid()
        if os.fork() == 0:  # noqa: TID251
            os.execvp("sleep", ["sleep", daemon])
        os._exit(0)
    while not (_runs(child) and _runs(daemon)):
        time.sleep(0.005)
    ctx.progress(0.5, "started")
    time.sleep(seconds)


@node("contract.frozen_objects")
def frozen_objects(ctx: NodeContext) -> int:
    """Return how many objects the garbage collector leaves alone."""
    return gc.get_freeze_count()


@node("contract.find_processes")
def find_processes(ctx: NodeContext, *, seconds: str) -> bool:
    """Say whether such a process is seen."""
    return _runs(seconds)


def _runs(seconds: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"sleep\0" + seconds.encode() + b"\0":
                return True
    return False


@node("contract.keep_file")
def keep_file(ctx: NodeContext, *, text: str) -> str:
    """Write a file, and return its path."""
    path = Path(tempfile.gettempdir(), f"{ctx.tenant_id}.txt")
    path.write_text(text)
    return str(path)


@node("contract.read_file")
def read_file(ctx: NodeContext, *, path: str) -> str:
    """Return the content of a file; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return Path(path).read_text()
    return ""


@node("contract.compute")
def compute(ctx: NodeContext, *, cpu_seconds: float, ram_mb: int) -> None:
    """Use the processor in this process and in another one, and RAM for a moment."""
    held = b"x" * (ram_mb << 20)
    until = time.process_time() + cpu_seconds
    while time.process_time() < until:
        pass
    del held
    busy = f"import time\nwhile time.process_time() < {cpu_seconds}: pass"
    subprocess.run(["python3", "-I", "-S", "-c", busy], check=True)


@node("contract.connect")
def connect(ctx: NodeContext, *, port: int, abstract: str) -> list[str]:
    """Return which of these answer: a port of this machine, a socket without a file."""
    found = []
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", port)),
        (socket.AF_UNIX, f"\0{abstract}"),
    ):
        with contextlib.suppress(OSError), socket.socket(family) as sock:
            sock.settimeout(2)
            sock.connect(address)
            found.append(family.name)
    return found


@node("contract.fail_on_close")
def fail_on_close(ctx: NodeContext) -> None:
    """Fail in two of three callbacks, each in its own way."""

    def last() -> None:
        ran.append("second")
        raise KeyError

    def first() -> None:
        raise LookupError if ran == ["third", "second"] else AssertionError

    ran: list[str] = []
    ctx.on_close(first)
    ctx.on_close(last)
    ctx.on_close(lambda: ran.append("third"))


@node("contract.use_ram")
def use_ram(ctx: NodeContext, *, amount: int) -> None:
    """Keep so many MB."""
    _kept.extend(os.urandom(1 << 20) * 8 for _ in range(amount // 8))


@node("contract.use_disk")
def use_disk(ctx: NodeContext, *, amount: int) -> None:
    """Write so many MB."""
    with tempfile.TemporaryFile() as file:
        for _ in range(amount):
            file.write(b"x" * (1 << 20))


@node("contract.use_processes")
def use_processes(ctx: NodeContext, *, amount: int) -> None:
    """Start so many processes, one beside the other."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(subprocess.Popen(["sleep", "60"]) for _ in range(amount))
    finally:
        for process in started:
            process.kill()
            process.wait()


@node("contract.use_files")
def use_files(ctx: NodeContext, *, amount: int) -> None:
    """Open so many files."""
    with contextlib.ExitStack() as stack:
        for _ in range(amount):
            stack.enter_context(Path("/dev/null").open())
