"""Servers of a killed supervisor that are still shutting down."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from orchestrator.embedded.errors import EmbeddedError

POLL_INTERVAL = 0.05  # seconds


def wait_unused(directory: Path, program: str, *, timeout: float) -> None:
    """Wait until no `program` works in `directory`, which a server makes its working directory.

    Two servers on the same data would spoil it, and one that ends late removes the socket of its
    successor. So nothing may start before its predecessor is gone.
    """
    deadline = time.monotonic() + timeout
    while users := users_of(directory, program):
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in users)
            raise EmbeddedError(f"{directory} is still in use by {program}, process {pids}")
        time.sleep(POLL_INTERVAL)


def users_of(directory: Path, program: str) -> list[psutil.Process]:
    """The processes of that name whose working directory is `directory`."""
    place = str(directory.resolve())
    named = [one for one in psutil.process_iter(["name"]) if one.info["name"] == program]
    return [process for process in named if _cwd(process) == place]


def _cwd(process: psutil.Process) -> str:
    """Where it works; nothing if it is gone, somebody else's, or deeper than the system can tell."""
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return ""
