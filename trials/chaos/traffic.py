"""The runs of a chaos: submitted, cancelled and looked at from outside, also while PostgreSQL comes and goes.

Timing: looks a few times a second. Model: sync, one thread. Guarantee: at-least-once; what the database did not answer
is tried again, and a submission carries a key, so that it makes one run. Failure: bubble, unless the database is away.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, connections

from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.states import TERMINAL_EXECUTION
from executions.submission.cancel import AlreadyEnded, request_cancel
from executions.submission.submit import RunRequest, submit
from tenants.scope import TenantRef, tenant_scope
from trials.chaos import plan
from trials.chaos.plan import PlannedRun

ACTOR = "chaos"
BATCH = 10  # submissions in a row, before anything else is looked at

Answer = TypeVar("Answer")


class Traffic:
    """Keeps so many runs open, as long as it is told to."""

    def __init__(
        self,
        tenants: Sequence[TenantRef],
        blueprints: Sequence[str],
        *,
        seed: int,
        judge: str,
        at_once: int,
    ) -> None:
        self._tenants = {tenant.schema: tenant for tenant in tenants}
        self._blueprints = blueprints
        self._seed = seed
        self._judge = judge
        self._at_once = at_once
        self._next = 0
        self._cancels: list[tuple[float, TenantRef, UUID]] = []
        self._open: dict[UUID, TenantRef] = {}
        self.submitted: set[UUID] = set()
        self.cancelled: set[UUID] = set()  # of which it was asked
        self.moved = time.monotonic()  # when the last run ended

    @property
    def open(self) -> int:
        """How many have not ended, as far as is known."""
        return len(self._open)

    @property
    def waits_for(self) -> Mapping[UUID, TenantRef]:
        """Those that have not ended."""
        return self._open

    def turn(self, *, more: bool) -> None:
        """Look, cancel what is to be cancelled and, if there are to be more, submit as many as have ended."""
        steadily(self._look)
        steadily(self._cancel_due)
        if more:
            steadily(self._fill)

    def _fill(self) -> None:
        missing = min(self._at_once - len(self._open), BATCH)
        for _ in range(missing):
            self._submit(plan.run(self._seed, self._next, self._blueprints))
        if missing > 0:
            admit_and_send(bounded=True)

    def _submit(self, planned: PlannedRun) -> None:
        tenant = self._tenants[planned.tenant]
        run = submit(
            tenant,
            RunRequest(
                blueprint=planned.blueprint,
                inputs={"judge": self._judge},
                requested_by=ACTOR,
                seed=planned.seed,
                idempotency_key=f"chaos {planned.index}",
            ),
        ).execution
        self._next += 1
        self._open[run.pk] = tenant
        self.submitted.add(run.pk)
        if planned.cancel_after is not None:
            self._cancels.append((time.monotonic() + planned.cancel_after, tenant, run.pk))

    def _cancel_due(self) -> None:
        while due := [cancel for cancel in self._cancels if cancel[0] <= time.monotonic()]:
            _, tenant, run_id = due[0]
            self.cancelled.add(run_id)  # before: its answer may be lost
            with tenant_scope(tenant), suppress(AlreadyEnded):
                request_cancel(run_id, actor=ACTOR)
            self._cancels.remove(due[0])

    def _look(self) -> None:
        for tenant in self._tenants.values():
            mine = [run_id for run_id, whose in self._open.items() if whose is tenant]
            with tenant_scope(tenant):
                ended = Execution.objects.filter(pk__in=mine, state__in=sorted(TERMINAL_EXECUTION))
                for run_id in ended.values_list("pk", flat=True):
                    del self._open[run_id]
                    self.moved = time.monotonic()

    def states(self) -> Counter[str]:
        """How all runs stand."""
        found: Counter[str] = Counter()
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                rows = Execution.objects.values_list("state", "code")
                found.update(f"{state} {code}".strip() for state, code in rows)
        return found


def steadily(ask: Callable[[], Answer]) -> Answer | None:
    """Ask the database; none if it is away, and the next one asks over a new connection."""
    try:
        return ask()
    except (OperationalError, InterfaceError):
        connections.close_all()
        return None
