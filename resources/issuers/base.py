"""What a type of resource does in the worker: issues what outlives a socket, and revokes it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from isolane.protocol import Grant, ResourceScope

FAR_SECONDS = 4.0  # for everything that one issue, or one revocation, asks of a far side


class IssueError(Exception):
    """Something could not be issued or revoked; the message names no secret."""

    def __init__(self, message: str, *, nothing_made: bool = False) -> None:
        super().__init__(message)
        self.nothing_made = nothing_made  # for certain: the far side could not even be asked


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A resource that a placement declared: its definition, with the secrets resolved."""

    tenant: str  # the name that steps and logs see
    execution_id: UUID
    epoch: int
    name: str
    type: str
    definition: str
    scope: ResourceScope
    eager: bool
    config: Mapping[str, Any]
    secrets: Mapping[str, str] = field(repr=False)
    address: str  # that its host stands for, checked; nothing if its config names none
    seconds_left: float  # until the run's own deadline

    def grant(self, **changes: Any) -> Grant:
        """What the runtime is given; everything that is not changed goes as it is."""
        values = {
            "name": self.name,
            "type": self.type,
            "definition": self.definition,
            "scope": self.scope,
            "eager": self.eager,
            "config": dict(self.config),
            "secrets": dict(self.secrets),
            "address": self.address,
        }
        return Grant(**{**values, **changes})


@dataclass(frozen=True, kw_only=True)
class FarThing:
    """What will exist at a far side until it is revoked; its name holds the epoch."""

    kind: str  # such as database.role
    far_id: str  # its name there
    data: Mapping[str, Any] = field(repr=False)  # what it takes to revoke it; stored encrypted


class Issuer(ABC):
    """Of one type of resource; keeps no state."""

    type: ClassVar[str]

    @abstractmethod
    def things(self, ask: Ask) -> Sequence[FarThing]:
        """What `issue` is going to make, without making it: it is committed to the ledger first."""

    @abstractmethod
    def issue(self, ask: Ask, things: Sequence[FarThing]) -> Grant:
        """Make these things and return the grant; raises IssueError within FAR_SECONDS."""

    @abstractmethod
    def revoke(self, thing: FarThing) -> None:
        """Take it away with all that hangs on it; nothing to take away is fine. Raises IssueError."""
