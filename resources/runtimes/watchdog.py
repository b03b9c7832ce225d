"""The watchdog: a process that ends this worker's runtimes when their keepalive runs out.

A stopped worker cannot end them itself, and a step may keep every thread of its own process busy. So a small separate
process watches: with every renewal of the lease it gets the time until which the runtimes may live.

Timing: a message takes microseconds; starting it some milliseconds, before the first runtime.
Model: any thread, one at a time.
Guarantee: a runtime does not outlive the last keepalive; with the worker all of them end.
Failure: a watchdog that was killed, or no longer reads, is replaced, and gets all messages again.
"""

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import resources
from resources.runtimes.keepalive import KeepaliveTerm

_SOURCE_ROOT = Path(resources.__file__).resolve().parent.parent
_START_SECONDS = 5.0
_STOP_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Watchdog:
    """Gets a message for each runtime that starts or ends; its process is started with the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, Path] = {}
        self._keepalive = KeepaliveTerm()
        self._process: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The id of its process, if there is one."""
        return self._process.pid if self._process else None

    def watch(self, pid: int, folder: Path) -> None:
        """Watch a runtime: at the end of the keepalive, its process, its descendants and its folder are ended."""
        with self._lock:
            self._watched[pid] = folder
            if self._sock is None:
                self._start()
            else:
                self._send(_watch(pid, folder))

    def forget(self, pid: int) -> None:
        """Stop watching a runtime that is gone."""
        with self._lock:
            if self._watched.pop(pid, None) is not None:
                self._send(f"forget {pid}")

    def keepalive(self, until: float) -> None:
        """Let the runtimes live until then (monotonic)."""
        with self._lock:
            self._keepalive.renew(until)
            if self._watched and (self._sock is None or self._is_stopped()):
                self._restart()
            else:
                self._send(f"until {until!r}")

    def lapsed_since(self, at: float) -> bool:
        """Say whether a keepalive has run out since then: a runtime of that time was ended for it."""
        return self._keepalive.lapsed_since(at)

    def stop(self) -> None:
        """End it, and the runtimes that it still watches."""
        with self._lock:
            self._watched.clear()
            if self._sock is not None:
                self._sock.close()
                self._sock = None
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_SECONDS)
            self._kill()

    def _send(self, message: str) -> None:
        """Send a message without waiting; replace a watchdog that does not read."""
        if self._sock is None:
            return
        try:
            self._sock.send(os.fsencode(message), socket.MSG_DONTWAIT)
        except OSError:
            self._restart()

    def _is_stopped(self) -> bool:
        """Say whether its process has stopped or ended, without reaping it."""
        flags = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        assert self._process is not None  # noqa: S101 - it comes and goes with its socket
        try:
            return os.waitid(os.P_PID, self._process.pid, flags) is not None
        except ChildProcessError:  # it was reaped already
            return True

    def _restart(self) -> None:
        logger.warning("the watchdog is gone; another one starts", extra={"event": "WATCHDOG_GONE"})
        self._kill()
        try:
            self._start()
        except OSError as error:  # no more processes for now: tried again with the next keepalive
            logger.error("no watchdog: %s", error, extra={"event": "WATCHDOG_GONE"})  # noqa: TRY400 - no trace wanted

    def _kill(self) -> None:
        """Kill it before its socket is closed: at the end of its stream it would end all runtimes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            module = "resources.runtimes.watchdog_process"
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-P", "-m", module, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    env={"PYTHONPATH": str(_SOURCE_ROOT)},
                )
            except BaseException:
                ours.close()
                raise
        self._sock = ours
        messages = [_watch(pid, folder) for pid, folder in self._watched.items()]
        ours.settimeout(
            _START_SECONDS
        )  # it reads as soon as it has started, and many do not fit before
        with contextlib.suppress(OSError):  # it died at once; the next message finds out
            for message in [*messages, f"until {self._keepalive.until!r}"]:
                ours.send(os.fsencode(message))
        ours.settimeout(None)


def _watch(pid: int, folder: Path) -> str:
    return f"watch {pid} {folder}"
