"""Submitting, replaying and cancelling executions. Services write tickets and never publish.

Timing: request-time. Model: sync. Guarantee: exactly-once; one statement writes run and ticket, or neither, and of two
submissions with the same idempotency key one is written. Failure: bubble, as an IsolaneError with code and field.
"""

import json
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.utils.crypto import salted_hmac

from executions.blueprints.plan import Plan, plan_of
from executions.blueprints.schema.inputs import check_inputs
from executions.models import Blueprint, BlueprintVersion, Execution
from executions.models.sealing import seal, unseal
from executions.placement.registry import Offer, current_offer
from executions.semantics.masking import masked_inputs
from executions.semantics.seeds import SEED_BITS
from executions.services.publishing import version as published_version
from executions.states import ExecutionState
from executions.submission import idempotency
from executions.submission.bounded_work import bounded_work
from executions.submission.idempotency import Key, Seen
from executions.transitions.cancel import cancel
from executions.transitions.submit import Submission, write_submission
from foundation.errors import Conflict, InvalidInput, NotFound, Unavailable
from isolane.protocol import ProtocolError, dump
from resources.isolation_choice import IsolationDecision, choose
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope

MAX_KEY = 200


class AlreadyEnded(Conflict):
    """A run that has ended cannot be cancelled."""

    code = "already_ended"


class IdempotencyConflict(Conflict):
    """The same key came with something else."""

    code = "idempotency_conflict"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What somebody asks to be run."""

    blueprint: str
    inputs: dict[str, Any]
    requested_by: str
    version: int | None = None
    seed: int | None = None
    request_id: str = ""
    idempotency_key: str = ""
    replay_of: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """The run, and whether this very request made it."""

    execution: Execution
    is_new: bool


def submit(*, tenant: TenantRef, **request: Any) -> Execution:
    """Write a run, its steps and its ticket; it starts when a slot is free. Takes the fields of a Request."""
    return submit_once(tenant, Request(**request)).execution


def submit_once(tenant: TenantRef, request: Request) -> Submitted:
    """The same, but a key that was used before gives the run that it made, or is refused if it came with else."""
    _check(request)
    digest = ""
    if request.idempotency_key:
        digest = _digest(request)
        if idempotency.check(_key_of(tenant, request), digest) is not Seen.NEW:
            # The row decides; a run that was dropped since has freed its key.
            with tenant_scope(tenant):
                if found := _found(request, digest):
                    return Submitted(execution=found, is_new=False)
    submitted = _submit(tenant, request, digest)
    if request.idempotency_key:
        idempotency.remember(_key_of(tenant, request), digest)
    return submitted


def _key_of(tenant: TenantRef, request: Request) -> Key:
    return Key(tenant_id=tenant.id, blueprint=request.blueprint, text=request.idempotency_key)


def _submit(tenant: TenantRef, request: Request, digest: str) -> Submitted:
    with platform_scope():
        offer = current_offer()
        row = Tenant.objects.get(pk=tenant.id)
    with tenant_scope(tenant):
        version = published_version(request.blueprint, request.version)
        with bounded_work():
            check_inputs(version.content, request.inputs)
            plan = plan_of(version.content_hash, version.content)
            submission = _submission(
                tenant, request, version, plan, _isolation(row, plan, offer), offer, digest
            )
        return _written(submission, request)


def _written(submission: Submission, request: Request) -> Submitted:
    for _ in range(2):
        if write_submission(submission):
            return Submitted(execution=_row(submission), is_new=True)
        # Another run has the key, or our own row was written over a connection that was then lost.
        found = _found(request, submission.request_hash)
        if found is not None and found.pk != submission.execution_id:
            return Submitted(execution=found, is_new=False)
        if Execution.objects.filter(pk=submission.execution_id).exists():
            return Submitted(execution=_row(submission), is_new=True)
        # The run that had the key was dropped between the two looks.
    raise Unavailable("The idempotency key is being freed; send the same request again.")


def _submission(
    tenant: TenantRef,
    request: Request,
    version: BlueprintVersion,
    plan: Plan,
    isolation: IsolationDecision,
    offer: Offer,
    digest: str,
) -> Submission:
    execution_id = uuid4()
    hidden = plan.sensitive_inputs & set(request.inputs)
    return Submission(
        execution_id=execution_id,
        tenant_id=tenant.id,
        version_id=version.pk,
        plan=plan,
        inputs=dump(masked_inputs(request.inputs, hidden)).decode(),
        sealed_inputs=seal(execution_id, request.inputs) if hidden else None,
        labels=dump(dict(plan.labels)).decode(),
        seed=secrets.randbits(SEED_BITS) if request.seed is None else request.seed,
        isolation=isolation.level,
        isolation_reason=isolation.reason,
        catalogue=offer.catalogue,
        requested_by=request.requested_by,
        request_id=request.request_id,
        idempotency_key=request.idempotency_key,
        key_blueprint=version.blueprint_id if request.idempotency_key else 0,
        request_hash=digest,
        replay_of=request.replay_of,
    )


def replay(
    tenant: TenantRef,
    execution_id: UUID,
    *,
    requested_by: str,
    request_id: str = "",
    idempotency_key: str = "",
) -> Submitted:
    """Run a run's version again with its seed and inputs; steps declared deterministic must come to the same."""
    with tenant_scope(tenant):
        runs = Execution.objects.select_related("blueprint_version__blueprint")
        original = runs.filter(pk=execution_id).first()
        if original is None:
            raise NotFound(f"There is no execution exec_{execution_id}.", field="id")
        sealed = original.sealed_inputs
        inputs = unseal(original.pk, bytes(sealed)) if sealed else original.inputs
    request = Request(
        blueprint=original.blueprint_version.blueprint.name,
        version=original.blueprint_version.number,
        inputs=inputs,
        seed=original.seed,
        requested_by=requested_by,
        request_id=request_id,
        idempotency_key=idempotency_key,
        replay_of=original.pk,
    )
    return submit_once(tenant, request)


def request_cancel(execution_id: UUID, *, actor: str) -> ExecutionState:
    """Cancel a run of the tenant entered; one that runs ends within seconds."""
    state = cancel(execution_id, message=f"Cancelled by {actor}.", actor=actor)
    if state is None:
        found = Execution.objects.filter(pk=execution_id).values_list("state", flat=True).first()
        if found is None:
            raise NotFound(f"There is no execution exec_{execution_id}.", field="id")
        raise AlreadyEnded(f"The execution has already ended: {found}.", field="id")
    return state


def _check(request: Request) -> None:
    seed, key = request.seed, request.idempotency_key
    if seed is not None and not 0 <= seed < 2**SEED_BITS:
        raise InvalidInput(
            f"seed is {seed}; use a whole number from 0 to 2^{SEED_BITS} - 1.", field="seed"
        )
    if len(key) > MAX_KEY or not key.isprintable():
        raise InvalidInput(
            f"The idempotency key must be at most {MAX_KEY} printable characters.",
            field="idempotency_key",
        )


def _digest(request: Request) -> str:
    """The same request has the same digest. Keyed, since inputs may hold what nobody must guess from it."""
    asked = [request.blueprint, request.version, request.inputs, request.seed]
    if request.replay_of is not None:
        asked.append(str(request.replay_of))
    return salted_hmac("executions.request", _canonical(asked), algorithm="sha256").hexdigest()


def _canonical(value: Any) -> bytes:
    try:
        dump(value)  # refuses what cannot be stored
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except ProtocolError as error:
        raise InvalidInput(f"inputs: {error}.", field="inputs") from None


def _found(request: Request, digest: str) -> Execution | None:
    if not request.idempotency_key:
        return None
    # A key counts for its blueprint: who reaches only some must not learn of others' keys, nor take them.
    named = Blueprint.objects.filter(name=request.blueprint)
    runs = Execution.objects.filter(key_blueprint__in=named.values("id"))
    found = runs.filter(idempotency_key=request.idempotency_key).first()
    if found is not None and found.request_hash != digest:
        raise IdempotencyConflict(
            f"The idempotency key {request.idempotency_key!r} was used for another request of this blueprint;"
            " take a new key, or send the same request.",
            field="idempotency_key",
        )
    return found


def _row(submission: Submission) -> Execution:
    return Execution(id=submission.execution_id, seed=submission.seed, state=ExecutionState.QUEUED)


def _isolation(tenant: Tenant, plan: Plan, offer: Offer) -> IsolationDecision:
    return choose(
        required=Isolation(tenant.required_isolation),
        trusted=tenant.trusted,
        available=offer.isolation_levels,
        requested=Isolation(plan.isolation) if plan.isolation else None,
    )
