"""A child process: its description, start, supervision and end.

Timing: starting returns at once; ending waits for the child's own time, then kills.
Model: sync, for one thread.
Guarantee: an ended child leaves no descendant.
Failure: a failed start is raised; a process that survives its kill is reported, and the others are ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from foundation.process_states import ENDED

LAUNCHER = Path(__file__).with_name("launch.py")
LOG_LIMIT = 10 * 1024 * 1024  # bytes
TAIL_LINES = 20
POLL_INTERVAL = 0.02  # seconds
KILL_TIMEOUT = 10.0  # seconds that the kernel may take to end a killed process


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """The description of a child; `env` is the whole environment, or None for a copy of this process's."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    user: int | None = None
    group: int | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout: float = 10.0
    # Sent by the kernel when the supervisor dies, for whatever reason.
    death_signal: signal.Signals = signal.SIGKILL
    ready: Callable[[], bool] | None = None
    ready_timeout: float = 30.0
    restart: bool = True


class ChildProcess:
    """A started process with its own session, so that Ctrl-C reaches only the supervisor."""

    def __init__(self, child: ServerProcess, logs: Path) -> None:
        self.child = child
        with _open_log(log_path(logs, child.name)) as log:
            self._process = subprocess.Popen(  # noqa: S603 - argv comes from our own code
                _command(child),
                env=_environment(child),
                cwd=child.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        """Say whether it ended; it is not reaped yet, so its pid still names its process group."""
        if self._process.returncode is not None:
            return True
        try:
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, flags) is not None
        except ChildProcessError:  # already reaped
            return True

    def reap(self) -> int:
        """Kill what is left of its process group and return the exit status."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        try:
            return self._process.wait(KILL_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"process {self.pid} still runs although killed") from None

    def end(self, *, hastened: Callable[[], bool]) -> str:
        """Stop it and its descendants; return the outcome in words."""
        family = self._descendants()
        if not self.has_ended():
            self._process.send_signal(self.child.stop_signal)
        deadline = time.monotonic() + self.child.stop_timeout
        while not (self.has_ended() or hastened() or time.monotonic() > deadline):
            time.sleep(POLL_INTERVAL)
        outcome = "stopped" if self.has_ended() else "killed, because it did not stop in time"
        family |= self._descendants()
        try:
            self.reap()
            _kill(family)
        except TimeoutError as error:
            return str(error)
        return outcome

    def _descendants(self) -> set[psutil.Process]:
        """Return all descendants, also those with their own session, such as PostgreSQL's backends."""
        try:
            return set(psutil.Process(self.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return set()


def describe_exit(status: int) -> str:
    """Return an exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # real-time signals have numbers only
        return f"killed by signal {-status}"


def log_path(logs: Path, name: str) -> Path:
    """Return the path of the log of the child `name`."""
    return logs / f"{name}.log"


def log_tail(logs: Path, name: str) -> str:
    """Return the last lines of the log of the child `name`."""
    with log_path(logs, name).open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 8192))
        lines = log.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:])


def _command(child: ServerProcess) -> list[str]:
    # Isolated and without site: quick, and untouched by the child's PYTHON* variables.
    interpreter = [sys.executable, "-I", "-S", str(LAUNCHER)]
    account = ["-" if number is None else str(number) for number in (child.user, child.group)]
    options = [str(os.getpid()), str(int(child.death_signal)), *account]
    program, *arguments = child.argv
    return [*interpreter, *options, shutil.which(program) or program, *arguments]


def _environment(child: ServerProcess) -> dict[str, str] | None:
    if child.env is None:
        return None
    # The interpreter of the launcher may need it to find its own library.
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return needed | dict(child.env)


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    path.touch(mode=0o600)
    return path.open("ab")


def _kill(processes: set[psutil.Process]) -> None:
    """Kill and wait; psutil compares start times, so a reused pid is safe."""
    deadline = time.monotonic() + KILL_TIMEOUT
    while left := [process for process in processes if runs(process)]:
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in left)
            raise TimeoutError(f"process {pids} still runs although killed")
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(POLL_INTERVAL)


def runs(process: psutil.Process) -> bool:
    """Say whether a process still runs."""
    try:
        return process.is_running() and process.status() not in ENDED
    except psutil.NoSuchProcess:
        return False
