"""The errors of the embedded servers."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The embedded servers cannot do what was asked; the message is meant for the operator."""


class AlreadyRunning(EmbeddedError):
    """Another process runs this stack; `pid` is None until that process has written it."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"Isolane already runs here ({who}); 'isolane down' stops it")


class ChildFailed(EmbeddedError):
    """A child ended, or stayed unready, while it was being started."""

    def __init__(self, name: str, reason: str, log_tail: str) -> None:
        self.name = name
        self.reason = reason
        self.log_tail = log_tail
        super().__init__(f"{name} {reason}\n{log_tail}".rstrip())
