"""A zygote as a process of the test: forks runners that nobody supervises."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import isolane
from isolane.channel import channel_pair
from isolane.sandbox.report import ExitReport
from isolane.stream import Stream
from isolane.zygote import MESSAGE_BYTES

ROOT = str(Path(isolane.__file__).parent.parent)
# What `-m isolane.zygote` does, where neither site-packages nor PYTHONPATH are looked at.
BARE = f"""
import runpy, sys
sys.path.append({ROOT!r})
runpy.run_module("isolane.zygote", run_name="__main__")
"""
SECONDS = 20.0


class BareRunner(NamedTuple):
    """A forked runner: its stream, and the lifeline over which its end is reported."""

    stream: Stream
    lifeline: socket.socket
    pid: int
    pidfd: int

    def wait(self) -> int | None:
        """Return its exit code once it has ended."""
        self.lifeline.settimeout(SECONDS)
        return ExitReport.decode(self.lifeline.recv(MESSAGE_BYTES)).exit_code

    def ended(self) -> bool:
        """Say whether it is dead."""
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        self.stream.close()
        self.lifeline.close()
        os.close(self.pidfd)


class BareZygote:
    """Its process, and the worker's end of its socket."""

    def __init__(self, process: "subprocess.Popen[str]", control: socket.socket) -> None:
        self.process = process
        self._control = control
        self._control.settimeout(SECONDS)

    def hello(self) -> dict[str, Any]:
        """Return its first message."""
        found: dict[str, Any] = json.loads(self._control.recv(MESSAGE_BYTES))
        return found

    def fork(self, folder: Path) -> BareRunner:
        """Fork a runner of the level shared."""
        ours, theirs = channel_pair()
        lifeline, line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, line:
            request = json.dumps({"folder": str(folder)}).encode()
            given = [theirs.reading, theirs.writing, line.fileno()]
            socket.send_fds(self._control, [request], given)
        answer, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        return BareRunner(Stream(ours), lifeline, json.loads(answer)["pid"], descriptors[0])


@contextlib.contextmanager
def bare_zygote(*arguments: str, installed: bool = False) -> Iterator[BareZygote]:
    """Start one, without what is installed unless asked for; it is gone afterwards."""
    python = [sys.executable, "-I", *(() if installed else ("-S",)), "-c", BARE]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [*python, f"--fd={theirs.fileno()}", *arguments],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
    with ours, process:
        try:
            yield BareZygote(process, ours)
        finally:
            process.kill()
