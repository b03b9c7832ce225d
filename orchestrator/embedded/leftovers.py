"""Servers of a killed supervisor that are still shutting down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from orchestrator.embedded.errors import EmbeddedError

POLL_INTERVAL = 0.05  # seconds


def wait_unused(directory: Path, *, timeout: float) -> None:
    """Wait until no process works in `directory`, where each server makes its home.

    Two servers on the same data would spoil it, and one that ends late removes the socket of its
    successor. So nothing may start before its predecessor is gone.
    """
    deadline = time.monotonic() + timeout
    while users := users_of(directory):
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in users)
            raise EmbeddedError(f"{directory} is still in use by process {pids}")
        time.sleep(POLL_INTERVAL)


def users_of(directory: Path) -> list[psutil.Process]:
    """The processes, this one excepted, whose working directory is `directory`."""
    wanted = str(directory.resolve())
    processes = psutil.process_iter(["cwd"])
    return [
        process
        for process in processes
        if process.info["cwd"] == wanted and process.pid != os.getpid()
    ]
