"""Submit a run. Services write tickets and never publish.

Timing: request-time.
Model: sync.
Guarantee: exactly-once; one statement writes run and ticket, or neither, and once per idempotency key.
Failure: bubble, as an IsolaneError with code and field.
"""

import json
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.utils.crypto import salted_hmac

from executions.blueprints.plan import plan_of
from executions.blueprints.schema.inputs import check_inputs
from executions.models import Blueprint, Execution
from executions.models.sealing import seal
from executions.placement.registry import Offer, current_offer
from executions.selectors.blueprints import blueprint_version
from executions.semantics.masking import masked_inputs
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState
from executions.submission import idempotency
from executions.submission.bounded_work import bounded_work
from executions.submission.idempotency import Key, Seen
from executions.transitions.submit import Submission, write_submission
from foundation.errors import Conflict, InvalidInput, Unavailable
from isolane.protocol import ProtocolError, dump
from resources.isolation_choice import choose
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantRef, platform_scope, tenant_scope

MAX_KEY = 200


class IdempotencyConflict(Conflict):
    """The idempotency key was used with a different request."""

    code = "idempotency_conflict"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """A request to run a blueprint."""

    blueprint: str
    inputs: dict[str, Any]
    requested_by: str
    version: int | None = None  # the newest
    seed: int | None = None  # a random one
    request_id: str = ""
    idempotency_key: str = ""
    replay_of: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """The run that a request created, now or earlier."""

    execution: Execution
    is_new: bool  # False if the idempotency key was used before


def submit(tenant: TenantRef, request: RunRequest) -> Submitted:
    """Write a run, its steps and its ticket; it starts when a slot is free.

    Idempotent: a reused key returns the run it created; with a different request it is refused.
    """
    _check(request)
    if not request.idempotency_key:
        return _write(tenant, request, digest="")
    key = Key(tenant_id=tenant.id, blueprint=request.blueprint, text=request.idempotency_key)
    digest = _digest(request)
    if idempotency.check(key, digest) is not Seen.NEW:
        # The row decides: a run that was dropped meanwhile has freed its key.
        with tenant_scope(tenant):
            if existing := _existing(request, digest):
                return Submitted(execution=existing, is_new=False)
    submitted = _write(tenant, request, digest)
    idempotency.remember(key, digest)
    return submitted


def _write(tenant: TenantRef, request: RunRequest, digest: str) -> Submitted:
    """Write the run, unless another run has the idempotency key."""
    with platform_scope():
        offer = current_offer()
        row = Tenant.objects.get(pk=tenant.id)
    with tenant_scope(tenant):
        submission = _submission(row, request, offer, digest)
        run = Execution(
            id=submission.execution_id, seed=submission.seed, state=ExecutionState.QUEUED
        )
        for _ in range(2):
            if write_submission(submission):
                return Submitted(execution=run, is_new=True)
            # Another run has the key, or our own row was written over a connection that was then lost.
            existing = _existing(request, digest)
            if existing is not None and existing.pk != run.pk:
                return Submitted(execution=existing, is_new=False)
            if Execution.objects.filter(pk=run.pk).exists():
                return Submitted(execution=run, is_new=True)
            # The run that had the key was dropped between the two statements.
    raise Unavailable("The idempotency key is being freed; send the same request again.")


def _submission(tenant: Tenant, request: RunRequest, offer: Offer, digest: str) -> Submission:
    """Check the inputs, choose the isolation level, and mask and seal sensitive values."""
    version = blueprint_version(request.blueprint, request.version)
    with bounded_work():
        check_inputs(version.content, request.inputs)
        plan = plan_of(version.content_hash, version.content)
        isolation = choose(
            required=Isolation(tenant.required_isolation),
            trusted=tenant.trusted,
            available=offer.isolation_levels,
            requested=Isolation(plan.isolation) if plan.isolation else None,
        )
        execution_id = uuid4()
        sensitive = plan.sensitive_inputs & set(request.inputs)
        return Submission(
            execution_id=execution_id,
            tenant_id=tenant.pk,
            version_id=version.pk,
            plan=plan,
            inputs=dump(masked_inputs(request.inputs, sensitive)).decode(),
            sealed_inputs=seal(execution_id, request.inputs) if sensitive else None,
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


def _check(request: RunRequest) -> None:
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


def _digest(request: RunRequest) -> str:
    """Return a digest that equal requests share. Keyed, so that inputs cannot be guessed from it."""
    parts = [request.blueprint, request.version, request.inputs, request.seed]
    if request.replay_of is not None:
        parts.append(str(request.replay_of))
    return salted_hmac("executions.request", _canonical(parts), algorithm="sha256").hexdigest()


def _canonical(value: Any) -> bytes:
    try:
        dump(value)  # refuses values that cannot be stored
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except ProtocolError as error:
        raise InvalidInput(f"inputs: {error}.", field="inputs") from None


def _existing(request: RunRequest, digest: str) -> Execution | None:
    """Return the run that has the request's key, if any; raise if its request was different."""
    if not request.idempotency_key:
        return None
    # Keys count per blueprint: a caller with limited reach must neither see nor take keys of other blueprints.
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
