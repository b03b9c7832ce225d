"""The turns of the event loop that one tenant has for the brokers of its runs: one piece of work in each.

Timing: a piece waits for the tenant's pieces before it, and for no other tenant's.
Model: asyncio, in the loop's thread.
Guarantee: many connections of a tenant delay others no more than few; who gives up waiting keeps no turn.
Failure: none of its own; a call that fails stops nobody.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class LoopTurns:
    """Gives them in the order in which they were asked for."""

    def __init__(self) -> None:
        self._is_taken = False  # the present one
        self._waiting: deque[Callable[[], bool]] = deque()

    def take(self) -> bool:
        """Take the present turn, or say that it is taken already."""
        if self._is_taken:
            return False
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._next)
        return True

    async def wait(self) -> None:
        """Wait for a turn, before a piece of work."""
        if self.take():
            return
        given = asyncio.get_running_loop().create_future()

        def give() -> bool:
            if is_wanted := not given.done():
                given.set_result(None)
            return is_wanted

        self._waiting.append(give)
        await given

    def call(self, action: Callable[[], object]) -> None:
        """Call this in a later turn."""

        def act() -> bool:
            action()
            return True

        self._waiting.append(act)
        self.take()

    def _next(self) -> None:
        """Give the turn that begins to the one that has waited longest, if there is any."""
        self._is_taken = False
        if self._waiting:
            self.take()
        while self._waiting and not self._waiting.popleft()():
            pass  # it was cancelled
