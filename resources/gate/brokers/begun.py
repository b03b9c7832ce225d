"""A connection of a run of which the first bytes were read already.

Timing: bubble.
Model: async; one task reads.
Guarantee: the first bytes come first.
Failure: bubble.
"""

from resources.gate.brokers.base import RunConnection


class BegunConnection:
    """Reads those bytes again, then what follows."""

    def __init__(self, inside: RunConnection, first: bytes) -> None:
        self._inside = inside
        self._first = first

    async def read(self) -> bytes:
        """Return some bytes, none at the end."""
        if not self._first:
            return await self._inside.read()
        first, self._first = self._first, b""
        return first

    async def write(self, data: bytes) -> None:
        """Send bytes to the run."""
        await self._inside.write(data)

    def write_eof(self) -> None:
        """End this direction."""
        self._inside.write_eof()

    async def gone(self) -> None:
        """Wait until nobody reads what is written."""
        await self._inside.gone()

    def charge(self, size: int, /) -> None:
        """Count bytes that do not come to the run."""
        self._inside.charge(size)

    def reset(self) -> None:
        """End the connection at once."""
        self._inside.reset()
