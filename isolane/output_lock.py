"""The lock over output, which any thread may write at any moment.

A finaliser or a signal handler can run at any point, also in a thread that is sending. If it waited there for a thread
that waits to send, both would wait for ever.
"""

import threading
from collections.abc import Callable


def _never() -> bool:
    return False


class OutputLock:
    """One lock for all captured output; `busy` is true if the calling thread is just sending."""

    def __init__(self, busy: Callable[[], bool] = _never) -> None:
        self.lock = threading.RLock()
        self.busy = busy

    def forked(self) -> None:
        """In a forked child: replace the lock, whose holder is in the parent."""
        self.lock = threading.RLock()
