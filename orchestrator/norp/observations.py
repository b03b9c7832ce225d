"""What was observed of a probe's run: by its nodes, by the ledger and, above all, by the far side. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from isolane.tags import tag


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """What a node says of the handle that it was given."""

    step: str
    resource_id: str
    connection_id: str  # as the far side calls it; nothing where it tells its clients no id


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """A row of the run's ledger."""

    resource_id: str
    type: str
    step: str  # that opened it; nothing if the context did
    epoch: int
    ended: str  # how; nothing while it is open
    seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedConnection:
    """What the far side saw of a connection, and when by the observer's clock."""

    id: str
    mark: str  # what it says of itself there
    user: str  # that it logged in as
    seen_from: float
    seen_until: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSeen:
    """One run, after its end."""

    execution_id: str
    tenant: str
    level: str
    state: str
    code: str
    uses: tuple[Use, ...]
    ledger: tuple[LedgerEntry, ...]
    connections: tuple[ObservedConnection, ...]
    issued: tuple[str, ...]  # users and roles that the far side had for it
    left: tuple[str, ...]  # of them and of its keys, when the run was first seen to have ended
    gone_s: float | None  # after that, until its last connection was gone; None if it never was

    @property
    def name(self) -> str:
        """As people know it."""
        return f"exec_{self.execution_id}"

    @property
    def handles(self) -> frozenset[str]:
        """The ids of the handles that its nodes were given."""
        return frozenset(use.resource_id for use in self.uses)

    @property
    def held(self) -> frozenset[str]:
        """Everything that it ever had: by its nodes, its ledger and the far side."""
        return self.handles | {entry.resource_id for entry in self.ledger} | set(self.issued)

    @property
    def connection_ids(self) -> frozenset[str]:
        """Every connection that the far side saw, or that a node was told of."""
        told = {use.connection_id for use in self.uses if use.connection_id}
        return frozenset(told | {connection.id for connection in self.connections})

    @property
    def is_seen(self) -> bool:
        """Whether the far side saw all that its nodes used: without that, nothing is proved."""
        seen = {connection.id for connection in self.connections}
        return bool(seen) and seen == self.connection_ids

    @property
    def is_tagged(self) -> bool:
        """Whether every connection said whose it is: the tenant's and the execution's."""
        marks = [
            tag(tenant_id=self.tenant, execution_id=self.execution_id, epoch=epoch)
            for epoch in {entry.epoch for entry in self.ledger}
        ]
        return bool(self.connections) and all(
            any(mark in connection.mark for mark in marks) for connection in self.connections
        )

    @property
    def is_gone(self) -> bool:
        """Whether the far side has nothing of it any more."""
        return not self.left and self.gone_s is not None

    @property
    def allocated(self) -> int:
        """How much its ledger says came to be."""
        return sum(entry.ended != "failed" for entry in self.ledger)

    @property
    def disposed(self) -> int:
        """How much of that its ledger says is gone."""
        return sum(entry.ended not in {"", "failed"} for entry in self.ledger)

    @property
    def is_clean(self) -> bool:
        """Whether its ledger balances, and is not empty."""
        return 0 < self.allocated == self.disposed


def overlap_s(first: RunSeen, second: RunSeen) -> float:
    """How long both were connected at the same time."""
    if not first.connections or not second.connections:
        return 0.0
    since = max(_since(run.connections) for run in (first, second))
    until = min(_until(run.connections) for run in (first, second))
    return max(0.0, until - since)


def _since(connections: Iterable[ObservedConnection]) -> float:
    return min(connection.seen_from for connection in connections)


def _until(connections: Iterable[ObservedConnection]) -> float:
    return max(connection.seen_until for connection in connections)
