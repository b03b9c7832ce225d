"""The wait after failures: none for the first ones, then doubled each time up to a limit. Pure."""

from dataclasses import dataclass
from itertools import takewhile

SECOND = 1_000  # all times are in milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Backoff:
    """Waits as a table, which Python and a script in Redis both read."""

    waits: tuple[int, ...]  # after the first failure, the second, …; the last for all that follow
    memory: int  # after the last failure, until all are forgotten

    def wait_after(self, failures: int) -> int:
        """Return the wait after this many failures."""
        return self.waits[min(failures, len(self.waits)) - 1]

    @property
    def longest(self) -> int:
        """The longest wait."""
        return max(self.waits)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedSubject:
    """A subject whose failures are counted under a name, and its waits."""

    name: str
    backoff: Backoff


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """The result of counting one failure of each subject in advance."""

    waits: tuple[int, ...]  # of each subject; if one must wait, nothing was counted
    failures: tuple[int, ...]  # of each subject, including this one

    @property
    def wait(self) -> int:
        """The wait until all of them may be tried."""
        return max(self.waits, default=0)


def doubling(*, free: int, longest: int, memory: int) -> Backoff:
    """Return waits of zero for the free failures, then one second, doubled with each further failure."""
    steps = takewhile(lambda wait: wait < longest, (SECOND << step for step in range(32)))
    return Backoff(waits=(*([0] * free), *steps, longest), memory=memory)


def counting_only(*, memory: int) -> Backoff:
    """Return a table without waits: failures are only counted."""
    return Backoff(waits=(0,), memory=memory)


def seconds(wait: int) -> int:
    """Convert a wait to whole seconds, at least one, for people and for Retry-After."""
    return max(1, -(-wait // SECOND))
