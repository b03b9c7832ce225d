"""The state of a process before an execution, to which it returns when the process is reused."""

import os
import threading
from pathlib import Path

from isolane.processes import end_descendants


class Baseline:
    """What the process looked like when it was made."""

    def __init__(self) -> None:
        self._environ = dict(os.environ)
        self._directory = Path.cwd()
        self._threads = set(threading.enumerate())

    def restore(self) -> tuple[str, ...]:
        """Undo what can be undone; return what cannot, so that the process is not used again."""
        os.environ.clear()
        os.environ.update(self._environ)
        threads = set(threading.enumerate()) - self._threads
        left = sorted(f"thread {thread.name} was left running" for thread in threads)
        if end_descendants():
            left.append("a process was left running")
        try:
            os.chdir(self._directory)
        except OSError:
            left.append("the working directory is gone")
        return tuple(left)
