"""Submitting and cancelling executions. Services write tickets and never publish.

Timing: request-time. Model: sync. Guarantee: exactly-once; one transaction writes run and ticket, or neither.
Failure: bubble, as an IsolaneError with code and field.
"""

import secrets
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from executions.blueprint.inputs import check_inputs
from executions.blueprint.plan import plan
from executions.models import BlueprintVersion, Execution, ExecutionEvent, Step
from executions.placement.models import Ticket
from executions.placement.workers import Offer, current_offer
from executions.seeds import SEED_BITS
from executions.states import ExecutionState
from executions.transitions.cancel import cancel
from orchestrator.core.errors import Conflict, InvalidInput, NotFound
from resources.levels import Decision, choose
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope


class AlreadyEnded(Conflict):
    """A run that has ended cannot be cancelled."""

    code = "already_ended"


def submit(
    *,
    tenant: TenantRef,
    blueprint: str,
    inputs: dict[str, Any],
    requested_by: str,
    version: int | None = None,
    seed: int | None = None,
) -> Execution:
    """Write a run, its steps and its ticket; it starts when a slot is free."""
    if seed is not None and not 0 <= seed < 2**SEED_BITS:
        raise InvalidInput(
            f"seed is {seed}; use a whole number from 0 to 2^{SEED_BITS} - 1.", field="seed"
        )
    with platform_scope():
        offer = current_offer()
        isolation = _isolation(tenant, offer)
    with tenant_scope(tenant):
        found = _version(blueprint, version)
        check_inputs(found.content, inputs)
        return _write(
            tenant=tenant,
            version=found,
            inputs=inputs,
            isolation=isolation,
            offer=offer,
            requested_by=requested_by,
            seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        )


def _write(
    *,
    tenant: TenantRef,
    version: BlueprintVersion,
    inputs: dict[str, Any],
    isolation: Decision,
    offer: Offer,
    requested_by: str,
    seed: int,
) -> Execution:
    steps = plan(version.content).steps
    now = timezone.now()
    execution = Execution(
        id=uuid4(),
        blueprint_version=version,
        inputs=inputs,
        seed=seed,
        isolation=isolation.level,
        isolation_reason=isolation.reason,
        catalogue=offer.catalogue,
        next_step=steps[0].path,
        last_event=1,
        requested_by=requested_by,
    )
    with transaction.atomic():
        execution.save(force_insert=True)
        Step.objects.bulk_create(
            [
                Step(execution=execution, position=step.position, path=step.path, uses=step.uses)
                for step in steps
            ]
        )
        ExecutionEvent.objects.create(
            execution=execution, sequence=1, at=now, kind="execution.queued"
        )
        Ticket.objects.create(
            execution_id=execution.id,
            tenant_id=tenant.id,
            isolation=isolation.level,
            catalogue_id=offer.catalogue,
            waiting_since=now,
        )
    return execution


def request_cancel(execution_id: UUID, *, actor: str) -> ExecutionState:
    """Cancel a run of the tenant entered; one that runs ends within seconds."""
    state = cancel(execution_id, message=f"Cancelled by {actor}.")
    if state is None:
        found = Execution.objects.filter(pk=execution_id).values_list("state", flat=True).first()
        if found is None:
            raise NotFound(f"There is no execution exec_{execution_id}.", field="id")
        raise AlreadyEnded(f"The execution has already ended: {found}.", field="id")
    return state


def _isolation(tenant: TenantRef, offer: Offer) -> Decision:
    row = Tenant.objects.get(pk=tenant.id)
    return choose(
        required=Isolation(row.required_isolation),
        trusted=row.trusted,
        available=offer.isolation_levels,
    )


def _version(blueprint: str, number: int | None) -> BlueprintVersion:
    versions = BlueprintVersion.objects.select_related("blueprint").filter(
        blueprint__name=blueprint
    )
    found = (versions.filter(number=number) if number else versions.order_by("-number")).first()
    if found is None:
        wanted = f"{blueprint}@{number}" if number else blueprint
        raise NotFound(f"There is no blueprint {wanted!r}; publish one first.", field="blueprint")
    return found
