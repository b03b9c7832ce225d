"""The supervisor: starts children, restarts those that crash, and stops all in reverse order.

Timing: a long-running loop in the main thread.
Model: sync, single-threaded; signals only raise or set a flag.
Guarantee: at-least-once; a child runs until it is stopped, and all end with the supervisor.
Failure: retry; a crash is followed by a restart after a doubling delay; a failed first start is raised.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from orchestrator.embedded.child import ChildProcess, ServerProcess, describe_exit, log_tail
from orchestrator.embedded.errors import ChildFailed

FIRST_DELAY = 0.5  # seconds before the first restart, doubled with each further crash
LONGEST_DELAY = 10.0  # seconds
HEALTHY_AFTER = 30.0  # seconds of life after which former crashes are forgotten
POLL_INTERVAL = 0.1  # seconds

OnEvent = Callable[[str, str], None]


class StopRequested(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP arrived; not an Exception, so that no code swallows it."""


@dataclass
class _Watched:
    """A child and its state; without a process it waits for `restart_at`, if it is restarted at all."""

    child: ServerProcess
    process: ChildProcess | None = None
    started: float = 0.0
    ready: bool = False
    crashes: int = 0
    restart_at: float | None = None


def restart_delay(crashes: int) -> float:
    """Return the delay after that many crashes in a row."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(crashes - 1, 10))


class Supervisor:
    """Supervises children, in the main thread only: for the kernel, the end of the *thread* that
    started a child is the parent's death.

    `with Supervisor(logs) as supervisor:` takes the signals: the first raises `StopRequested`
    wherever the block is, and leaving the block stops everything. `start`, `poll` and `stop_all`
    work without the block, too; then signals stay as they are.
    """

    def __init__(self, logs: Path, *, on_event: OnEvent | None = None) -> None:
        self._logs = logs
        self._on_event = on_event
        self._watched: list[_Watched] = []
        self._former_handlers: list[dict[signal.Signals, Any]] = []
        self._signals_deferred = False
        self._signal_pending = False
        self._stopping = False
        self._hastened = False

    def __enter__(self) -> Self:
        self._take_signals()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop_all()
        finally:
            self._return_signals()

    @property
    def pids(self) -> dict[str, int]:
        """The pids of the running children, by name."""
        return {one.child.name: one.process.pid for one in self._watched if one.process}

    def start(self, *children: ServerProcess) -> None:
        """Start children side by side and wait until all are ready, or raise `ChildFailed` for the first that fails."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("children belong to the thread that starts them: use the main one")
        starting: list[tuple[_Watched, ChildProcess]] = []
        for child in children:
            watched = _Watched(child)
            self._watched.append(watched)
            starting.append((watched, self._spawn(watched)))
        while True:
            for watched, process in starting:
                if reason := self._update(watched, process):
                    self._watched.remove(watched)
                    name = watched.child.name
                    raise ChildFailed(name, reason, log_tail(self._logs, name))
            starting = [one for one in starting if not one[0].ready]
            if not starting:
                return
            time.sleep(POLL_INTERVAL / 2)

    def poll(self) -> None:
        """Note which children ended or became ready, and restart those that are due."""
        for watched in self._watched:
            if watched.process is None:
                if watched.restart_at is not None and time.monotonic() >= watched.restart_at:
                    self._spawn(watched)
            elif reason := self._update(watched, watched.process):
                self._schedule_restart(watched, reason)

    def run(self) -> None:
        """Supervise until a signal asks to stop, then stop everything."""
        with self, contextlib.suppress(StopRequested):
            self._supervise()

    def stop_all(self) -> None:
        """Stop the children, last started first; a Ctrl-C meanwhile kills what still runs."""
        self._stopping, self._hastened = True, False
        self._take_signals()
        try:
            while self._watched:
                self._end(self._watched[-1])
                self._watched.pop()
        finally:
            self._return_signals()
            self._stopping = self._hastened = False

    def _supervise(self) -> NoReturn:
        while True:
            self.poll()
            time.sleep(POLL_INTERVAL)

    def _spawn(self, watched: _Watched) -> ChildProcess:
        with self._deferring_signals():
            watched.process = process = ChildProcess(watched.child, self._logs)
            watched.started = time.monotonic()
            watched.ready = False
            watched.restart_at = None
        self._report(watched.child, f"started (pid {process.pid})")
        return process

    def _update(self, watched: _Watched, process: ChildProcess) -> str:
        """Update a running child's state; return why it is gone, empty if it is not."""
        child, age = watched.child, time.monotonic() - watched.started
        if process.has_ended():
            status = process.reap()
            watched.process = None
            return f"ended ({describe_exit(status)})"
        if watched.ready:
            watched.crashes = 0 if age > HEALTHY_AFTER else watched.crashes
        elif child.ready is None or child.ready():
            watched.ready = True
            self._report(child, "ready")
        elif age > child.ready_timeout:
            self._end(watched)
            return f"was not ready within {child.ready_timeout:g} s"
        return ""

    def _schedule_restart(self, watched: _Watched, reason: str) -> None:
        if not watched.child.restart:
            self._report(watched.child, reason)
            return
        watched.crashes += 1
        delay = restart_delay(watched.crashes)
        watched.restart_at = time.monotonic() + delay
        self._report(watched.child, f"{reason}, restart in {delay:g} s")

    def _end(self, watched: _Watched) -> None:
        if watched.process is None:
            return
        outcome = watched.process.end(hastened=lambda: self._hastened)
        watched.process = None
        self._report(watched.child, outcome)

    def _report(self, child: ServerProcess, what: str) -> None:
        # A closed terminal must not keep the children from being stopped.
        with contextlib.suppress(OSError):
            if self._on_event:
                self._on_event(child.name, what)

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a supervisor works in the main thread")
        former = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Under nohup, closing the terminal must not stop the stack.
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            former[number] = signal.signal(number, self._on_signal)
        self._former_handlers.append(former)

    def _return_signals(self) -> None:
        for number, handler in self._former_handlers.pop().items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping:
            # Only Ctrl-C hastens: a service manager may repeat its SIGTERM.
            self._hastened |= number == signal.SIGINT
        elif self._signals_deferred:
            self._signal_pending = True
        else:
            raise StopRequested

    @contextlib.contextmanager
    def _deferring_signals(self) -> Iterator[None]:
        """Defer signals: between the fork and the record of the child no exception may be raised."""
        self._signals_deferred = True
        try:
            yield
        finally:
            self._signals_deferred = False
        if self._signal_pending:
            self._signal_pending = False
            raise StopRequested
