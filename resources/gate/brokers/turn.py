"""The turn of one run at work that would hold the loop: hashing a password, verifying certificates.

Timing: until those before it in the same run are done, then as long as the work.
Model: asyncio; threads of its own, shared by all runs, of which a run has one at a time.
Guarantee: a turn lasts until its work is done, also if nobody waits for it any more.
Failure: bubble.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_threads = ThreadPoolExecutor(4, thread_name_prefix="isolane-login")

R = TypeVar("R")


class Turn:
    """Work of one run, one piece after the other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, work: Callable[[], R]) -> R:
        """Do this in a thread and return what it does."""
        await self._lock.acquire()
        working = asyncio.get_running_loop().run_in_executor(_threads, work)
        working.add_done_callback(lambda _: self._lock.release())
        # The thread goes on when the wait is cancelled: the turn is its own until then.
        return await asyncio.shield(working)
