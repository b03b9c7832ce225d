"""Runners without a context, as a legacy system has them: opened once, never closed. For the benchmark alone.

Timing: only the first placement of a runner waits for an OPEN. Model: the pool of the level `shared`.
Guarantee: none of isolation: nothing is torn down, nothing set back, no folder wiped between two runs of a tenant.
Failure: as `shared`; a dead runner's globals are gone with it.
"""

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet

from isolane.protocol import Grant
from resources.placement import Placement
from resources.runtimes.base import OnResource, RunIdentity, Runtime, RuntimeStartError, ignore
from resources.runtimes.child import RunnerProcess
from resources.runtimes.pool import RunnerPool
from resources.runtimes.shared import SharedBackend, SharedRuntime


class BarePool(RunnerPool):
    """Takes runners back as they are."""

    def is_reusable(self, child: RunnerProcess) -> bool:
        """Always."""
        return True


class BareBackend(SharedBackend):
    """The pool of `shared`, without what a context does between two runs."""

    pool_class = BarePool

    def start(
        self,
        placement: Placement,
        *,
        identity: RunIdentity,
        grants: Sequence[Grant] = (),
        on_resource: OnResource = ignore,
    ) -> Runtime:
        """Take an idle runner of this tenant, or begin one."""
        if grants:
            raise RuntimeStartError("without a context there is nothing that could hold resources")
        child = self._pool.take(placement.tenant_id)
        return BareRuntime(self._pool, child, placement, identity, (), on_resource)


class BareRuntime(SharedRuntime):
    """A runner while one placement has it; its one context is that of the first."""

    _greeted: ClassVar[WeakSet[RunnerProcess]] = WeakSet()

    def open(self) -> None:
        """Open a new runner; one that was used before is open."""
        if self._child not in self._greeted:
            super().open()
            self._greeted.add(self._child)

    def begin_close(self) -> None:
        """Leave it open."""

    def _teardown(self, timeout: float) -> tuple[str, ...]:
        return ()
