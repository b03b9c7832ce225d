"""The connections that a run has open, no more than its limit; one beyond it waits for a moment.

A connection that its program has closed is found a few hundredths of a second later, so that a program which opens one
after the other, quickly, would else be refused although it never has two.

Timing: `WAIT_SECONDS` at most.
Model: asyncio, in the gate loop.
Guarantee: never more than `most`; those that wait are served in the order of their arrival.
Failure: none of its own; `enter` returns False.
"""

import asyncio
from collections import deque

from isolane.gate.connection import GateConnection

WAIT_SECONDS = 3.0
WAITING_MOST = 16  # each may hold a window of bytes


class OpenConnections:
    """Counts them."""

    def __init__(self, most: int | None) -> None:
        """None counts without a limit."""
        self._most = most
        self._open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, connection: GateConnection) -> bool:
        """Count one more; False if the run has too many open, or has left this one meanwhile."""
        if self._most is None or self._open < self._most:
            self._open += 1
            return True
        if len(self._waiting) >= WAITING_MOST:
            return False
        return await self._wait(connection)

    def leave(self) -> None:
        """Count one less; the one that has waited longest takes its place."""
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._open -= 1

    async def _wait(self, connection: GateConnection) -> bool:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await self._until_given(place, connection)
        except BaseException:
            if place.done():
                self.leave()  # it was given, and nobody takes it
            raise
        finally:
            if not place.done():
                self._waiting.remove(place)
        return place.done()

    async def _until_given(self, place: "asyncio.Future[None]", connection: GateConnection) -> None:
        """Wait for the place as long as the run wants it: also if it has left behind bytes that it has ended."""
        gone = asyncio.ensure_future(connection.gone())
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.wait({place, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not connection.is_reset or connection.has_left:
                    await asyncio.wait({place})
        except TimeoutError:
            return
        finally:
            gone.cancel()
