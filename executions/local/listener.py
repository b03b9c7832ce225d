"""The interfaces of a local run: a listener for its events, and a clock."""

import threading
import time
from typing import Protocol

from executions.local.run import LocalStep
from executions.semantics.approval_reply import ApprovalReply


class RunListener(Protocol):
    """Receives the events of a local run as they happen."""

    def log_line(self, step: str, level: str, message: str) -> None:
        """Show a log line of a step; of the run itself if `step` is empty."""

    def progress(self, step: str, fraction: float, message: str) -> None:
        """Show a step's progress."""

    def error(self, step: str, trace: str) -> None:
        """Show the trace of an exception that a node did not declare."""

    def attempt_finished(self, step: LocalStep) -> None:
        """Show a step after one of its attempts has ended."""

    def waiting(self, seconds: float) -> None:
        """Show that the run waits before it goes on."""

    def ask(self, step: str, question: str, expires_s: float) -> ApprovalReply | None:
        """Ask a person; return None if nobody answers in time."""


class Clock:
    """Real time; tests bring their own."""

    def now(self) -> float:
        """Return seconds of a monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Wait, at most until the run is cancelled."""
        cancelled.wait(seconds)
