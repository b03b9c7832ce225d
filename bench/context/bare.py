"""Runners without a context, like those of a legacy system: opened once, never closed. For the benchmark only.

Timing: only the first placement of a runner waits for an OPEN.
Model: the pool of the level `shared`.
Guarantee: no isolation; nothing is torn down, reset or wiped between two runs of a tenant.
Failure: as `shared`; a dead runner loses its globals.
"""

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet

from isolane.limits import RunLimits
from isolane.protocol import Grant
from resources.gate.gate import OnConnection
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
    OnResource,
    RunIdentity,
    Runtime,
    RuntimeStartError,
    ignore,
)
from resources.runtimes.pool import RunnerPool
from resources.runtimes.shared import SharedBackend, SharedRuntime
from resources.runtimes.shared_runner import SharedRunner


class BarePool(RunnerPool):
    """A pool that takes runners back as they are."""

    def is_reusable(self, child: SharedRunner) -> bool:
        """Return True always."""
        return True


class BareBackend(SharedBackend):
    """The level `shared` without the work of a context between two runs."""

    pool_class = BarePool

    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        limits: RunLimits = UNLIMITED,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
        on_connection: OnConnection = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or start one."""
        if grants:
            raise RuntimeStartError("without a context there is nothing that could hold resources")
        child = self._pool.take(placement.tenant_id)
        return BareRuntime(self._pool, child, placement, identity, limits, (), on_resource)


class BareRuntime(SharedRuntime):
    """A runner while one placement has it; its context is that of its first placement."""

    _opened_runners: ClassVar[WeakSet[SharedRunner]] = WeakSet()

    def open(self) -> None:
        """Open a new runner; a used one is open already."""
        if self._child not in self._opened_runners:
            super().open()
            self._opened_runners.add(self._child)

    def begin_close(self) -> None:
        """Do nothing: the runner stays open."""

    def _teardown(self, timeout: float) -> tuple[str, ...]:
        return ()
