"""Waiting for a condition, with a deadline."""

import time
from collections.abc import Callable

import psutil

from foundation.process_states import ENDED


def wait_until(condition: Callable[[], object], *, timeout: float = 20.0) -> float:
    """Return the seconds it took until `condition` held, or fail."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > timeout:
            raise AssertionError(f"not within {timeout} s: {condition}")
        time.sleep(0.05)
    return time.monotonic() - started


def family_of(pid: int) -> list[psutil.Process]:
    """A process and all that descend from it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    """Return True if it has ended; a zombie has."""
    try:
        return not process.is_running() or process.status() in ENDED
    except psutil.NoSuchProcess:
        return True
