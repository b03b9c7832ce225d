"""Who may hand on output, when any thread may at any moment.

A finaliser or a signal handler runs in the midst of anything, in a thread that is sending, too. Were it to wait there
for a thread that waits to send, both would wait for ever.
"""

import threading
from collections.abc import Callable


def _never() -> bool:
    return False


class Guard:
    """One lock for all that becomes lines; `busy` says whether the calling thread is in the midst of sending."""

    def __init__(self, busy: Callable[[], bool] = _never) -> None:
        self.lock = threading.RLock()
        self.busy = busy

    def forked(self) -> None:
        """Forget a holder that is not in this process."""
        self.lock = threading.RLock()
