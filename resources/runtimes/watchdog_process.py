"""`python -m resources.runtimes.watchdog_process FD`: see resources.runtimes.watchdog.

Timing: sleeps until it is told something or a time is over. Model: one thread, no code of steps, nothing of the
platform but the ending of processes. Guarantee: what it watches is dead shortly after the time that it was told last,
or after its worker has gone. Failure: what has ended by itself is no concern of it.
"""

import contextlib
import math
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from resources.runtimes.folder import remove_unheld
from resources.runtimes.processes import end_foreign
from resources.runtimes.watchdog import MESSAGE_MAX


@dataclass
class Watch:
    """What is watched, and until when."""

    until: float = math.inf
    runtimes: dict[int, tuple[psutil.Process, Path]] = field(default_factory=dict)

    def hear(self, message: str) -> None:
        """Take a message."""
        verb, _, rest = message.partition(" ")
        match verb:
            case "until":
                self.until = float(rest)
            case "watch":
                pid, _, folder = rest.partition(" ")
                with contextlib.suppress(psutil.NoSuchProcess):
                    self.runtimes[int(pid)] = (psutil.Process(int(pid)), Path(folder))
            case "forget":
                self.runtimes.pop(int(rest), None)

    def end_all(self) -> None:
        """Their time is over."""
        end_foreign(list(self.runtimes.values()))
        self.runtimes.clear()

    def left(self) -> float | None:
        """Seconds until something is to be ended; none if nothing ever is."""
        if not self.runtimes or self.until == math.inf:
            return None
        return max(self.until - time.monotonic(), 0.0)


def serve(sock: socket.socket, watch: Watch) -> None:
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
            watch.hear(message.decode())
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
    watch = Watch()
    folders: list[Path] = []
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        os.set_inheritable(sock.fileno(), False)  # noqa: FBT003 - its signature
        serve(sock, watch)
        folders = [folder for _, folder in watch.runtimes.values()]
        watch.end_all()
    for folder in folders:
        with contextlib.suppress(OSError):
            remove_unheld(folder)


if __name__ == "__main__":
    main()
