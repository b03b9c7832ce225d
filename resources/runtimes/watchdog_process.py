"""`python -m resources.runtimes.watchdog_process FD`: see resources.runtimes.watchdog.

It tries to remove a folder for ten seconds at most.

Timing: sleeps until a message comes or the keepalive runs out.
Model: one thread, no code of steps, nothing of the platform but the ending of processes.
Guarantee: a runtime is killed soon after its last keepalive or its worker's death; then its folder goes.
Failure: runtimes that have ended by themselves are ignored.
"""

import math
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# The code that ends processes is imported when it is needed: every worker starts this program.
MESSAGE_MAX = 8192
_PROC = Path("/proc")


class WatchedRuntime(NamedTuple):
    """A watched runtime."""

    started: str  # its start time by the kernel, since a process id may be reused
    folder: Path


@dataclass
class RuntimeWatch:
    """The watched runtimes, and the end of their keepalive."""

    until: float = math.inf
    runtimes: dict[int, WatchedRuntime] = field(default_factory=dict)

    def handle(self, message: str) -> None:
        """Apply a message."""
        verb, _, rest = message.partition(" ")
        match verb:
            case "until":
                self.until = float(rest)
            case "watch":
                pid, _, folder = rest.partition(" ")
                self.runtimes[int(pid)] = WatchedRuntime(_started(int(pid)), Path(folder))
            case "forget":
                self.runtimes.pop(int(rest), None)

    def end_all(self) -> None:
        """End all watched runtimes."""
        if not self.runtimes:
            return
        from resources.runtimes.runner_processes import end_foreign  # noqa: PLC0415 - see above

        living = [pid for pid, runtime in self.runtimes.items() if _started(pid) == runtime.started]
        end_foreign(living, [runtime.folder for runtime in self.runtimes.values()])
        self.runtimes.clear()

    def left(self) -> float | None:
        """Return the seconds until the keepalive runs out; None without runtimes or keepalive."""
        if not self.runtimes or self.until == math.inf:
            return None
        return max(self.until - time.monotonic(), 0.0)


def _started(pid: int) -> str:
    try:
        # The process name, in brackets, may itself contain brackets.
        return (
            (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        )
    except (OSError, IndexError):
        return ""


def serve(sock: socket.socket, watch: RuntimeWatch) -> None:
    """Handle messages until the worker is gone."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    while True:
        left = watch.left()
        poll.poll(None if left is None else math.ceil(left * 1000))
        # All messages first: a delay of this process itself must not end anything.
        while (message := _next(sock)) is not None:
            if not message:
                return
            watch.handle(os.fsdecode(message))
        if watch.left() == 0:
            watch.end_all()


def _next(sock: socket.socket) -> bytes | None:
    """Return the next message; empty at the end of the stream, None if there is none yet."""
    try:
        return sock.recv(MESSAGE_MAX, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def main() -> None:
    """Watch the runtimes of the worker at the other end of this descriptor."""
    watch = RuntimeWatch()
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        os.set_inheritable(sock.fileno(), False)  # noqa: FBT003 - its signature
        serve(sock, watch)
    folders = [runtime.folder for runtime in watch.runtimes.values()]
    if not folders:
        return
    from resources.runtimes.sweeping import SWEEP_SECONDS, remove_unheld  # noqa: PLC0415 - see above

    try:
        watch.end_all()
    finally:
        # A folder that stays is left to the sweep of another worker.
        remove_unheld(folders, until=time.monotonic() + SWEEP_SECONDS)


if __name__ == "__main__":
    main()
