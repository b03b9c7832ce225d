"""The issuer of a resource type: makes credentials that outlive a connection, and revokes them; in the worker."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from isolane.protocol import Grant
from resources.credentials import Credential, ResourceRequest

__all__ = ["REMOTE_SECONDS", "Credential", "IssueError", "Issuer", "ResourceRequest"]

REMOTE_SECONDS = 4.0  # for all that one issue, or one revocation, asks of a remote server


class IssueError(Exception):
    """A credential could not be issued or revoked; the message names no secret."""

    def __init__(self, message: str, *, nothing_made: bool = False) -> None:
        super().__init__(message)
        self.nothing_made = nothing_made  # for certain: the remote server could not even be asked


class Issuer(ABC):
    """Issues the credentials of one resource type; keeps no state."""

    type: ClassVar[str]

    @abstractmethod
    def plan(self, request: ResourceRequest) -> Sequence[Credential]:
        """Return the credentials that `issue` will make, without making them: the ledger is written first."""

    @abstractmethod
    def issue(self, request: ResourceRequest, credentials: Sequence[Credential]) -> Grant:
        """Make these credentials and return the grant; raises IssueError within REMOTE_SECONDS."""

    @abstractmethod
    def revoke(self, credential: Credential) -> None:
        """Remove a credential and everything that depends on it; one that is gone is fine. Raises IssueError."""
