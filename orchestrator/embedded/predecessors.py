"""Predecessors: servers of a killed supervisor that are still shutting down."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from orchestrator.embedded.errors import EmbeddedError

POLL_INTERVAL = 0.05  # seconds


def wait_unused(directory: Path, program: str, *, timeout: float) -> None:
    """Wait until no `program` has `directory` as its working directory, as every server does.

    Two servers on the same data would corrupt it, and one that ends late removes the socket of its
    successor. So nothing may start before its predecessor is gone.
    """
    deadline = time.monotonic() + timeout
    while found := processes_in(directory, program):
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in found)
            raise EmbeddedError(f"{directory} is still in use by {program}, process {pids}")
        time.sleep(POLL_INTERVAL)


def processes_in(directory: Path, program: str) -> list[psutil.Process]:
    """Return the processes of that name whose working directory is `directory`."""
    path = str(directory.resolve())
    named = [one for one in psutil.process_iter(["name"]) if one.info["name"] == program]
    return [process for process in named if _cwd(process) == path]


def _cwd(process: psutil.Process) -> str:
    """Return its working directory; empty if it is gone, another user's, or its path is too long."""
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return ""
