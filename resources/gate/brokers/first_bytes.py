"""The first bytes of a run's connection, read by number; the rest is relayed.

Timing: while a connection begins; the caller bounds it.
Model: asyncio.
Guarantee: bytes stay in order; none is lost between what was read and the `rest`.
Failure: ConnectionResetError of the run's connection.
"""

from resources.gate.brokers.base import RunConnection


class FirstBytes:
    """Reads exact numbers of bytes; what came beyond them is the `rest`."""

    def __init__(self, inside: RunConnection) -> None:
        self.inside = inside
        self._held = b""

    async def exactly(self, number: int) -> bytes:
        """Return so many bytes, or fewer if the run has ended before."""
        while len(self._held) < number:
            piece = await self.inside.read()
            if not piece:
                break
            self._held += piece
        found, self._held = self._held[:number], self._held[number:]
        return found

    @property
    def rest(self) -> bytes:
        """The bytes that were received and not yet returned."""
        return self._held
