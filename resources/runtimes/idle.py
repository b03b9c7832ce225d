"""The idle runners of a pool, each kept for its tenant's next run as long as all of them fit into so much RAM. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from resources.runtimes.shared_runner import SharedRunner

RUNNER_MB = 5.0  # private RAM of a runner whose steps have kept nothing
UNUSED_SECONDS = 600.0  # then its RAM is given back
# The RAM of all of them together, unless an operator says another: a worker has little else, machines have several.
_SHARE, _MOST_MB = 16, 1536.0
# Of too many some are ended at once: the list of the machine's processes is walked once for all of them.
_AT_ONCE = 8


def usual_idle_mb(usable_mb: float) -> float:
    """Return how much RAM idle runners may have where a worker may use so much."""
    return min(usable_mb / _SHARE, _MOST_MB)


class Idle(NamedTuple):
    """An idle runner."""

    tenant_id: int
    child: SharedRunner
    ram_mb: float
    since: float


class IdleRunners:
    """The runners of many tenants, the longest idle first; not safe for several threads."""

    def __init__(self, *, most_mb: float) -> None:
        self._most_mb = most_mb
        self._idle: list[Idle] = []

    def __iter__(self) -> Iterator[SharedRunner]:
        return (idle.child for idle in self._idle)

    def __len__(self) -> int:
        return len(self._idle)

    def add(self, child: SharedRunner, tenant_id: int, *, now: float) -> None:
        """Keep a runner of this tenant."""
        ram_mb = RUNNER_MB + max(child.grown_mb, 0.0)
        self._idle.append(Idle(tenant_id, child, ram_mb, now))

    def take(self, tenant_id: int) -> SharedRunner | None:
        """Remove and return the tenant's runner that was used last, if it has one."""
        for place in reversed(range(len(self._idle))):
            if self._idle[place].tenant_id == tenant_id:
                return self._idle.pop(place).child
        return None

    def take_surplus(self) -> list[SharedRunner]:
        """Remove and return the longest idle ones, if all together use too much RAM."""
        too_much = sum(idle.ram_mb for idle in self._idle) - self._most_mb
        number = _AT_ONCE if too_much > 0 else 0
        for place, idle in enumerate(self._idle, start=1):
            if too_much <= 0:
                break
            too_much -= idle.ram_mb
            number = max(number, place)
        return self._take(number)

    def take_unused(self, now: float) -> list[SharedRunner]:
        """Remove and return those that no run has used for long."""
        return self._take(sum(now - idle.since > UNUSED_SECONDS for idle in self._idle))

    def take_all(self) -> list[SharedRunner]:
        """Remove and return all."""
        return self._take(len(self._idle))

    def _take(self, number: int) -> list[SharedRunner]:
        taken, self._idle = self._idle[:number], self._idle[number:]
        return [idle.child for idle in taken]
