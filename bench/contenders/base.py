"""What every contender can do, measured alike: the drain of a backlog, and one run on an idle machine."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

DRAIN_SECONDS = 120.0
DRAIN_POLL = 0.02
ONE_SECONDS = 60.0
ONE_POLL = 0.001


class Skipped(Exception):
    """This contender cannot be measured here; the text says why."""


class Contender(ABC):
    """Driven in a process of its own."""

    @abstractmethod
    def prepare(self) -> None:
        """Make tables and the like; workers start afterwards."""

    @abstractmethod
    def ready(self) -> None:
        """Wait until the workers take runs; raises Skipped if there is nothing to measure."""

    @abstractmethod
    def fill(self, *, steps: int, runs: int) -> None:
        """Submit a backlog that no worker may take yet."""

    @abstractmethod
    def drain(self) -> float:
        """Open the gate; returns the seconds until the last run of the backlog has ended."""

    @abstractmethod
    def one(self, *, steps: int) -> float:
        """Submit one run; returns the seconds until its end is seen."""


def wait_until(condition: Callable[[], bool], *, what: str, seconds: float, poll: float) -> None:
    """Return as soon as the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(poll)
