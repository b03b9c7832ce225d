"""The request of a placement for one resource, and the credentials that are issued for it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from isolane.protocol import Grant, ResourceScope


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
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
    address: str  # the checked IP address of its host; empty if its config names no host
    seconds_left: float  # until the run's own deadline

    def grant(self, **changes: Any) -> Grant:
        """Return the grant for the runtime; fields that are not changed are copied as they are."""
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
class Credential:
    """A role, user or set of keys at a remote server, until it is revoked; its name holds the epoch."""

    kind: str  # such as database.role
    remote_id: str  # its name at the remote server
    data: Mapping[str, Any] = field(repr=False)  # needed to revoke it; stored encrypted
