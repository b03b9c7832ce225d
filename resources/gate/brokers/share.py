"""A run's share of what the gates of all tenants use: its tenant's turns of the loop, pace of frames, threads.

Timing: work in a thread waits for the run's own, then for the tenant's, then for a thread.
Model: asyncio; threads of its own, shared by all tenants, of which a tenant has one at a time.
Guarantee: a tenant takes one thread, a run one place in its tenant's queue; abandoned work counts until it is done.
Failure: bubble.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar
from weakref import WeakValueDictionary

from resources.gate.brokers.loop_turns import LoopTurns
from resources.gate.pace import FramePace

_threads = ThreadPoolExecutor(4, thread_name_prefix="isolane-login")

R = TypeVar("R")


class TenantShare:
    """The share that all runs of one tenant have together."""

    def __init__(self) -> None:
        self.turns = LoopTurns()
        self.thread = asyncio.Lock()
        self.pace = FramePace(time.monotonic())


class Share:
    """The share of one run."""

    def __init__(self, tenant: TenantShare | None = None) -> None:
        """Without a tenant the run is the only one."""
        self._tenant = tenant or TenantShare()
        self._lock = asyncio.Lock()
        self.turns = self._tenant.turns
        self.pace = self._tenant.pace

    async def in_thread(self, work: Callable[[], R]) -> R:
        """Do this in a thread and return what it does."""
        with ExitStack() as held:
            for lock in (self._lock, self._tenant.thread):
                await lock.acquire()
                held.callback(lock.release)
            working = asyncio.get_running_loop().run_in_executor(_threads, work)
            until_done = held.pop_all()
            working.add_done_callback(lambda _: until_done.close())
        # The thread goes on when the wait is cancelled: it counts until then.
        return await asyncio.shield(working)


_tenants: WeakValueDictionary[int, TenantShare] = WeakValueDictionary()
_making = threading.Lock()


def share_of(tenant_id: int) -> Share:
    """Return the share of one more run of this tenant, from any thread."""
    with _making:
        tenant = _tenants.get(tenant_id)
        if tenant is None:
            tenant = _tenants[tenant_id] = TenantShare()
        return Share(tenant)
