"""The interface of brokers: one serves the connections of one route.

Timing: as long as the connection lasts.
Model: asyncio, in the worker's gate loop.
Guarantee: no secret goes to the run.
Failure: ConnectionEnded with the reason; OSError for an ordinary end.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

# Connects to the checked address of the route; raises OSError, or ConnectionEnded if that is refused.
Connect = Callable[[], Awaitable[socket.socket]]

Charge = Callable[[int], None]  # counts bytes towards the run's limit


class RunConnection(Protocol):
    """A connection that a run has opened to the gate; what comes from it is not trusted."""

    async def read(self) -> bytes:
        """Return some bytes from the run, none at its end; ConnectionResetError if it was reset."""

    async def write(self, data: bytes) -> None:
        """Send bytes to the run, waiting while it does not read; ConnectionResetError if it was reset."""

    def write_eof(self) -> None:
        """End this direction; the other one may go on."""

    async def gone(self) -> None:
        """Wait until nobody reads what is written."""

    def charge(self, size: int, /) -> None:
        """Count bytes towards the run's limit that are carried for it and do not come to it."""

    def reset(self) -> None:
        """End the connection at once."""


class Broker(ABC):
    """Serves the connections of one route; keeps the secret, and nothing of a connection."""

    @abstractmethod
    async def serve(self, inside: RunConnection, connect: Connect) -> None:
        """Log in at the remote server and relay, until one side has ended.

        ConnectionEnded says why a connection cannot go on; OSError is an ordinary end of the remote server's.
        """
