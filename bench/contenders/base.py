"""The interface of a contender: drain a backlog, and run once on an idle machine."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

DRAIN_SECONDS = 120.0
DRAIN_POLL = 0.02
ONE_SECONDS = 60.0
ONE_POLL = 0.001


class Skipped(Exception):
    """This contender cannot be measured here; the text is the reason."""


class Contender(ABC):
    """A contender, in a process of its own."""

    @abstractmethod
    def prepare(self) -> None:
        """Create tables and the like, before the workers start."""

    @abstractmethod
    def ready(self) -> None:
        """Wait until the workers take runs; raise Skipped if there is nothing to measure."""

    @abstractmethod
    def fill(self, *, steps: int, runs: int) -> None:
        """Submit a backlog that no worker may take yet."""

    @abstractmethod
    def drain(self) -> float:
        """Open the gate; return the seconds until the last run of the backlog has ended."""

    @abstractmethod
    def one(self, *, steps: int) -> float:
        """Submit one run; return the seconds until its end is visible."""


def wait_until(condition: Callable[[], bool], *, what: str, seconds: float, poll: float) -> None:
    """Return as soon as the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(poll)
