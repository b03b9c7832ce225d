"""The load of a chaos trial: submit, cancel and poll runs, also across restarts of PostgreSQL.

Timing: polls a few times per second.
Model: sync, one thread.
Guarantee: at-least-once; unanswered requests are retried; an idempotency key keeps a submission to one run.
Failure: bubble, unless the database is down.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
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
BATCH = 10  # submissions in one turn

Answer = TypeVar("Answer")


class Traffic:
    """Keep this many runs of these tenants open."""

    def __init__(
        self,
        tenants: Sequence[TenantRef],
        blueprints: Sequence[str],
        *,
        seed: int,
        at_once: int,
    ) -> None:
        self._tenants = {tenant.schema: tenant for tenant in tenants}
        self._blueprints = blueprints
        self._seed = seed
        self._at_once = at_once
        self._next = 0
        self._cancels: list[tuple[float, TenantRef, UUID]] = []
        self._open: dict[UUID, TenantRef] = {}
        self.submitted: set[UUID] = set()
        self.cancelled: set[UUID] = set()  # for which it was requested
        self.last_end = time.monotonic()  # by the monotonic clock

    @property
    def open(self) -> int:
        """Return how many runs have not ended, as of the last poll."""
        return len(self._open)

    def turn(self, *, more: bool) -> None:
        """Poll, cancel what is due and, if more are wanted, replace the runs that have ended."""
        unless_down(self._poll)
        unless_down(self._cancel_due)
        if more:
            unless_down(self._fill)

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
                inputs={},
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
            self.cancelled.add(run_id)  # first: the answer may be lost
            with tenant_scope(tenant), suppress(AlreadyEnded):
                request_cancel(run_id, actor=ACTOR)
            self._cancels.remove(due[0])

    def _poll(self) -> None:
        for tenant in self._tenants.values():
            mine = [run_id for run_id, whose in self._open.items() if whose is tenant]
            with tenant_scope(tenant):
                ended = Execution.objects.filter(pk__in=mine, state__in=sorted(TERMINAL_EXECUTION))
                for run_id in ended.values_list("pk", flat=True):
                    del self._open[run_id]
                    self.last_end = time.monotonic()

    def states(self) -> Counter[str]:
        """Count all runs by state and code."""
        found: Counter[str] = Counter()
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                rows = Execution.objects.values_list("state", "code")
                found.update(f"{state} {code}".strip() for state, code in rows)
        return found

    def levels(self) -> Counter[str]:
        """Count all runs by isolation level."""
        found: Counter[str] = Counter()
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                found.update(Execution.objects.values_list("isolation", flat=True))
        return found


def unless_down(query: Callable[[], Answer]) -> Answer | None:
    """Query the database; return None if it is down, and connect anew with the next query."""
    try:
        return query()
    except (OperationalError, InterfaceError):
        connections.close_all()
        return None
