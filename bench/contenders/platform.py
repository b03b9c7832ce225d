"""Runs of the platform for two tenants, submitted through its services."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from bench.contenders.base import (
    DRAIN_POLL,
    DRAIN_SECONDS,
    ONE_POLL,
    ONE_SECONDS,
    Contender,
    Skipped,
    wait_until,
)
from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.schema.document import check
from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.placement.models import Ticket
from executions.placement.registry import living
from executions.services.publishing import publish
from executions.states import TERMINAL_EXECUTION, ExecutionState
from executions.submission.submit import RunRequest, submit
from tenants.models import Quota
from tenants.provisioner import work_off
from tenants.provisioning import migrate
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.selectors import tenant_by_schema
from tenants.services.tenants import TenantExists, create_tenant

TENANTS = ("acme", "globex")
WORKERS = 2
READY_SECONDS = 60.0
QUOTA = 10_000
STEPS = range(1, 11)


class Platform(Contender):
    """A contender whose runs end with their terminal state and the end of their ticket."""

    steps: Sequence[int] = STEPS  # of its blueprints

    def __init__(self, name: str) -> None:
        self._name = name
        self._tenants: list[TenantRef] = []
        self._submitted: list[tuple[TenantRef, UUID]] = []

    def prepare(self) -> None:
        """Migrate the database and create the tenants."""
        migrate()
        self._tenants = tenants_named(TENANTS)

    def ready(self) -> None:
        """Wait for the workers, publish the blueprints, and run once."""
        wait_until(_placeable, what="the workers", seconds=READY_SECONDS, poll=0.1)
        try:
            documents = [check(self._document(steps)) for steps in self.steps]
        except InvalidBlueprint as refused:
            raise Skipped(f"{self._name}: {refused.detail}") from None
        for tenant in self._tenants:
            with tenant_scope(tenant):
                for document in documents:
                    publish(document)
        self.one(steps=1)

    def fill(self, *, steps: int, runs: int) -> None:
        """Submit while the quota of the tenants is 0."""
        _set_quota(0)
        self._submitted = [
            (tenant, self._submit(tenant, steps))
            for tenant, _ in zip(self._tenants * runs, range(runs), strict=False)
        ]

    def drain(self) -> float:
        """Raise the quota, place runs, and wait until no ticket is left."""
        started = time.perf_counter()
        _set_quota(QUOTA)
        admit_and_send()
        wait_until(
            _no_ticket, what=f"the runs ({self._name})", seconds=DRAIN_SECONDS, poll=DRAIN_POLL
        )
        seconds = time.perf_counter() - started
        self._check()
        return seconds

    def one(self, *, steps: int) -> float:
        """Submit, place and send as a request does; then poll the row until it is terminal."""
        tenant = self._tenants[0]
        started = time.perf_counter()
        run_id = self._submit(tenant, steps)
        admit_and_send()
        with tenant_scope(tenant):
            ended = Execution.objects.filter(pk=run_id, state__in=sorted(TERMINAL_EXECUTION))
            wait_until(ended.exists, what="a run", seconds=ONE_SECONDS, poll=ONE_POLL)
        seconds = time.perf_counter() - started
        self._submitted = [(tenant, run_id)]
        self._check()
        return seconds

    def _submit(self, tenant: TenantRef, steps: int) -> UUID:
        blueprint = self._document(steps)["name"]
        return submit(
            tenant, RunRequest(blueprint=blueprint, inputs={}, requested_by="bench")
        ).execution.pk

    def _document(self, steps: int) -> dict[str, Any]:
        links = [
            {"key": f"s{number}", "uses": "data.map", "with": {"values": {}}}
            for number in range(steps)
        ]
        mode = {"express": True} if self._name == "express" else {}
        return {"name": f"{self._name}-{steps}", **mode, "steps": links}

    def _check(self) -> None:
        """Raise an error if a run failed: a fast failure is not a fast run."""
        for tenant in self._tenants:
            ids = [run_id for owner, run_id in self._submitted if owner == tenant]
            with tenant_scope(tenant):
                bad = Execution.objects.filter(pk__in=ids).exclude(state=ExecutionState.SUCCEEDED)
                if run := bad.first():
                    raise RuntimeError(f"{run} is {run.state}: {run.code} {run.message}")


def tenants_named(names: Sequence[str]) -> list[TenantRef]:
    """Return the tenants of these names; those that no other contender has created are created."""
    for name in names:
        with contextlib.suppress(TenantExists):
            create_tenant(schema=name, trusted=True, max_running=QUOTA, actor="bench")
    work_off()
    return [tenant_by_schema(name) for name in names]


def _set_quota(slots: int) -> None:
    """Write to the table itself: the services refuse a quota of 0, which is the gate here."""
    with platform_scope():
        Quota.objects.update(max_running=slots)


def _placeable() -> bool:
    with platform_scope():
        return living().count() >= WORKERS


def _no_ticket() -> bool:
    with platform_scope():
        return not Ticket.objects.exists()


def contender(name: str) -> Contender:
    """Return the contender `chain` or `express`."""
    return Platform(name)
