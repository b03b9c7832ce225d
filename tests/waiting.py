"""Waiting for a condition instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(
    condition: Callable[[], Found | None], what: str, seconds: float = 20.0, *, pause: float = 0.05
) -> Found:
    """Return the condition's value as soon as it is true; fail with what was waited for."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain for: {what}")
        time.sleep(pause)
    return found
