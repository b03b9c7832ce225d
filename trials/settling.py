"""Wait until nothing is left behind.

Timing: until nothing is left, at most as long as the caller allows.
Model: sync.
Guarantee: idempotent; it only looks.
Failure: bubble.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PAUSE_SECONDS = 0.5

Item = TypeVar("Item")


def left_after(look: Callable[[], list[Item]], seconds: float) -> list[Item]:
    """Return an empty list as soon as nothing is left, else what is left at the time limit."""
    deadline = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return left
