"""`python -m resources.runtimes.watchdog_process FD`: see resources.runtimes.watchdog.

Timing: sleeps until it is told something or a time is over. Model: one thread, no code of steps, nothing of the
platform but the ending of processes. Guarantee: what it watches is dead shortly after the time that it was told last,
or after its worker has gone; then their folders are removed, too, for ten seconds at most.
Failure: what has ended by itself is no concern of it.
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

# What it takes to end processes is imported when there is something to end: every worker starts with this program.
MESSAGE_MAX = 8192
_PROC = Path("/proc")


class WatchedRuntime(NamedTuple):
    """One that is watched."""

    started: str  # as the kernel says, since an id may be given again
    folder: Path


@dataclass
class RuntimeWatch:
    """What is watched, and until when."""

    until: float = math.inf
    runtimes: dict[int, WatchedRuntime] = field(default_factory=dict)

    def hear(self, message: str) -> None:
        """Take a message."""
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
        """Their time is over."""
        if not self.runtimes:
            return
        from resources.runtimes.runner_processes import end_foreign  # noqa: PLC0415 - see above

        living = [pid for pid, runtime in self.runtimes.items() if _started(pid) == runtime.started]
        end_foreign(living, [runtime.folder for runtime in self.runtimes.values()])
        self.runtimes.clear()

    def left(self) -> float | None:
        """Seconds until something is to be ended; none if nothing ever is."""
        if not self.runtimes or self.until == math.inf:
            return None
        return max(self.until - time.monotonic(), 0.0)


def _started(pid: int) -> str:
    try:
        # The name before the last bracket may hold anything, brackets too.
        return (
            (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        )
    except (OSError, IndexError):
        return ""


def serve(sock: socket.socket, watch: RuntimeWatch) -> None:
    """Until the worker has gone."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    while True:
        left = watch.left()
        poll.poll(None if left is None else math.ceil(left * 1000))
        # All that was said first: what kept this process from listening is no reason to end anything.
        while (message := _next(sock)) is not None:
            if not message:
                return
            watch.hear(os.fsdecode(message))
        if watch.left() == 0:
            watch.end_all()


def _next(sock: socket.socket) -> bytes | None:
    """The next message; empty if there will be none, none if there is none yet."""
    try:
        return sock.recv(MESSAGE_MAX, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def main() -> None:
    """Watch over what the worker at the other end of this descriptor has started."""
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
        # What stays is for the sweep of another worker.
        remove_unheld(folders, until=time.monotonic() + SWEEP_SECONDS)


if __name__ == "__main__":
    main()
