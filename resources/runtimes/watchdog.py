"""The process that ends this worker's runtimes when nobody keeps them alive.

A worker that was stopped cannot end them itself, and a step may keep every thread of its own process busy. So a small
process of its own watches: it is told, with every renewal of the lease, until when the runtimes may live.

Timing: telling takes microseconds; starting it some milliseconds, before the first runtime. Model: any thread, one at
a time. Guarantee: a runtime does not outlive the time that was told last; with the worker all of them end.
Failure: a watchdog that was killed, or does not answer, is replaced, and told everything again.
"""

import contextlib
import math
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import resources

_SOURCE_ROOT = Path(resources.__file__).resolve().parent.parent
_ANSWER_SECONDS = 2.0
_STOP_SECONDS = 5.0
MESSAGE_MAX = 8192


class Watchdog:
    """Told of runtimes as they come and go; started when the first one comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, Path] = {}
        self._until = math.inf  # nobody has promised to keep them alive yet
        self._was_late = False  # whether a promise was ever not kept in time
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Of its process, if there is one."""
        return self._process.pid if self._process else None

    def watch(self, pid: int, folder: Path) -> None:
        """Have a runtime ended when its time is over: its process, what that has started, and its folder."""
        with self._lock:
            self._watched[pid] = folder
            if self._sock is None:
                self._start()
            else:
                self._tell(_watch(pid, folder))

    def forget(self, pid: int) -> None:
        """The runtime is gone."""
        with self._lock:
            if self._watched.pop(pid, None) is not None:
                self._tell(f"forget {pid}")

    def keepalive(self, until: float) -> None:
        """Let the runtimes live until then (monotonic)."""
        with self._lock:
            self._was_late = self._is_late()
            self._until = until
            self._tell(f"until {until!r}")

    def has_ended(self, pid: int) -> bool:
        """Whether it was this watchdog that ended a runtime."""
        with self._lock:
            sock = self._sock
            if sock is None or not self._is_late() or not self._tell(f"ended? {pid}"):
                return False
            try:
                return sock.recv(MESSAGE_MAX) == b"yes"
            except OSError:  # it took too long, or is gone
                self._restart()
                return False

    def _is_late(self) -> bool:
        return self._was_late or time.monotonic() >= self._until

    def stop(self) -> None:
        """End it, and what it still watches."""
        with self._lock:
            self._watched.clear()
            self._end()

    def _tell(self, message: str) -> bool:
        """Without waiting: whoever does not take it is no good."""
        if self._sock is None:
            return False
        try:
            self._sock.send(message.encode(), socket.MSG_DONTWAIT)
        except OSError:
            self._restart()
            return False
        return True

    def _restart(self) -> None:
        self._end(at_once=True)
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            module = "resources.runtimes.watchdog_process"
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": str(_SOURCE_ROOT)},
            )
        ours.settimeout(_ANSWER_SECONDS)
        self._sock = ours
        messages = [_watch(pid, folder) for pid, folder in self._watched.items()]
        for message in [*messages, f"until {self._until!r}"]:
            with contextlib.suppress(OSError):  # it died at once; who tells it next finds out
                ours.send(message.encode(), socket.MSG_DONTWAIT)

    def _end(self, *, at_once: bool = False) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            if not at_once:
                self._process.wait(_STOP_SECONDS)
        self._process.kill()
        self._process.wait()
        self._process = None


def _watch(pid: int, folder: Path) -> str:
    return f"watch {pid} {folder}"
