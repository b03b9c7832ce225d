"""Observations of a probe's run: by its nodes, by its resource records and, above all, by the remote server. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from isolane.tags import tag


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedUse:
    """A node's report of the handle that it was given."""

    step: str
    resource_id: str
    connection_id: str  # as the remote server calls it; empty where clients get no id


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedRecord:
    """One resource record of the run."""

    resource_id: str
    type: str
    step: str  # the step that opened it; empty if the context did
    epoch: int
    ended: str  # how it ended; empty while it is open
    seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedConnection:
    """A connection as the remote server saw it, and when by the observer's clock."""

    id: str
    tag: str  # that the client has set
    user: str  # that it logged in as
    seen_from: float
    seen_until: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedRun:
    """One run, after its end."""

    execution_id: str
    tenant: str
    level: str
    state: str
    code: str
    uses: tuple[ObservedUse, ...]
    records: tuple[ObservedRecord, ...]
    connections: tuple[ObservedConnection, ...]
    credentials: tuple[str, ...]  # users and roles that the remote server had for it
    left: tuple[str, ...]  # of these and of its keys, when the run was first seen to have ended
    gone_s: float | None  # from then until its last connection was gone; None if it never was

    @property
    def name(self) -> str:
        """The id as people know it."""
        return f"exec_{self.execution_id}"

    @property
    def handles(self) -> frozenset[str]:
        """The ids of the handles that its nodes were given."""
        return frozenset(use.resource_id for use in self.uses)

    @property
    def resource_ids(self) -> frozenset[str]:
        """Every resource that it ever had: by its nodes, its records and the remote server."""
        recorded = {record.resource_id for record in self.records}
        return self.handles | recorded | set(self.credentials)

    @property
    def connection_ids(self) -> frozenset[str]:
        """Every connection that the remote server saw, or that a node was told of."""
        used = {use.connection_id for use in self.uses if use.connection_id}
        return frozenset(used | {connection.id for connection in self.connections})

    @property
    def is_seen(self) -> bool:
        """True if the remote server saw all that its nodes used: without that, nothing is proved."""
        seen = {connection.id for connection in self.connections}
        return bool(seen) and seen == self.connection_ids

    @property
    def is_tagged(self) -> bool:
        """True if every connection carried the tenant's and the execution's id."""
        tags = [
            tag(tenant_id=self.tenant, execution_id=self.execution_id, epoch=epoch)
            for epoch in {record.epoch for record in self.records}
        ]
        return bool(self.connections) and all(
            any(expected in connection.tag for expected in tags) for connection in self.connections
        )

    @property
    def is_gone(self) -> bool:
        """True if the remote server has nothing of it any more."""
        return not self.left and self.gone_s is not None

    @property
    def allocated(self) -> int:
        """The number of its recorded resources that came to be."""
        return sum(record.ended != "failed" for record in self.records)

    @property
    def disposed(self) -> int:
        """The number of these that are gone, by their records."""
        return sum(record.ended not in {"", "failed"} for record in self.records)

    @property
    def is_clean(self) -> bool:
        """True if all that was allocated is gone, and there was something."""
        return 0 < self.allocated == self.disposed


def overlap_s(first: ObservedRun, second: ObservedRun) -> float:
    """Return how long both were connected at the same time."""
    if not first.connections or not second.connections:
        return 0.0
    since = max(_since(run.connections) for run in (first, second))
    until = min(_until(run.connections) for run in (first, second))
    return max(0.0, until - since)


def _since(connections: Iterable[ObservedConnection]) -> float:
    return min(connection.seen_from for connection in connections)


def _until(connections: Iterable[ObservedConnection]) -> float:
    return max(connection.seen_until for connection in connections)
