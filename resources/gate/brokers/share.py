"""One tenant's share of what the gates of all tenants use: the event loop, and threads for work that would hold it.

Timing: a piece waits for the tenant's pieces before it; in the loop each has a turn of it.
Model: asyncio; threads of its own, shared by all tenants, of which a tenant has one at a time.
Guarantee: many connections of a tenant delay others no more than few; abandoned work counts until it is done.
Failure: bubble.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

_threads = ThreadPoolExecutor(4, thread_name_prefix="isolane-login")

R = TypeVar("R")


class Share:
    """The share that all runs of one tenant have together; for the loop's thread."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()  # of the thread
        self._is_taken = False  # in this turn of the loop
        self._waiting: deque[Callable[[], bool]] = deque()

    async def in_thread(self, work: Callable[[], R]) -> R:
        """Do this in a thread, behind what others of the tenant do there, and return what it does."""
        await self._lock.acquire()
        working = asyncio.get_running_loop().run_in_executor(_threads, work)
        working.add_done_callback(lambda _: self._lock.release())
        # The thread goes on when the wait is cancelled: it counts until then.
        return await asyncio.shield(working)

    def take(self) -> bool:
        """Take this turn of the loop, or say that it is taken already."""
        if self._is_taken:
            return False
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._next)
        return True

    async def turn(self) -> None:
        """Wait for a turn of the loop that nobody else of the tenant has taken, before a piece of work."""
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
        """Call this in a later turn of the loop, as `turn` waits for one."""

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


_shares: WeakValueDictionary[int, Share] = WeakValueDictionary()
_making = threading.Lock()


def share_of(tenant_id: int) -> Share:
    """Return the share of this tenant, from any thread."""
    with _making:
        share = _shares.get(tenant_id)
        if share is None:
            share = _shares[tenant_id] = Share()
        return share
