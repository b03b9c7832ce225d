"""How long to wait after failures: nothing for the first ones, then twice as long each time, up to a limit. Pure."""

from dataclasses import dataclass
from itertools import takewhile

SECOND = 1_000  # all times are in milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Backoff:
    """A table, so that Python and a script in Redis read the same one."""

    waits: tuple[int, ...]  # after the first failure, the second, …; the last for all that follow
    memory: int  # how long after the last failure all of them are forgotten

    def wait_after(self, failures: int) -> int:
        """The wait that the newest of so many failures brings."""
        return self.waits[min(failures, len(self.waits)) - 1]

    @property
    def longest(self) -> int:
        """No wait is longer."""
        return max(self.waits)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedSubject:
    """Whose failures are counted, by a name, and how long they make it wait."""

    name: str
    backoff: Backoff


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """What counting one failure of each subject in advance came to."""

    waits: tuple[int, ...]  # of each; if one has to wait, nothing was counted
    failures: tuple[int, ...]  # of each, with this one

    @property
    def wait(self) -> int:
        """How long until all of them may be tried."""
        return max(self.waits, default=0)


def doubling(*, free: int, longest: int, memory: int) -> Backoff:
    """So many failures cost nothing, the next one a second, each further one twice as much."""
    steps = takewhile(lambda wait: wait < longest, (SECOND << step for step in range(32)))
    return Backoff(waits=(*([0] * free), *steps, longest), memory=memory)


def counting_only(*, memory: int) -> Backoff:
    """Failures are known but bring no wait."""
    return Backoff(waits=(0,), memory=memory)


def seconds(wait: int) -> int:
    """A wait for people and for Retry-After: whole seconds, at least one."""
    return max(1, -(-wait // SECOND))
