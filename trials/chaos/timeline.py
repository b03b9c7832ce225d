"""The timeline of a chaos trial: faults, worker starts and ends, in a file beside the workers' logs.

Timing: writes a line at once.
Model: sync, one thread.
Guarantee: best-effort.
Failure: bubble.
"""

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path


class Timeline:
    """Lines with wall clock time and seconds since the beginning; some are counted for the report."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.write_text("", encoding="utf-8")
        self._began = time.monotonic()
        self.counts: Counter[str] = Counter()

    def note(self, line: str, *, count: str = "") -> None:
        """Write a line, and count it under this name if one is given."""
        if count:
            self.counts[count] += 1
        now, since = datetime.now(UTC), time.monotonic() - self._began
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{now:%H:%M:%S.%f} {since:7.2f} {line}\n")
