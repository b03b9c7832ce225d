"""Submitting: run, steps, first event and ticket are written together, once."""

from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest

from executions.blueprints.plan import plan
from executions.models import BlueprintVersion
from executions.placement.registry import current_offer
from executions.services.publishing import publish
from executions.states import ExecutionState, TicketState
from executions.transitions.submit import Submission, write_submission
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import document, events_of, everything_of, run_of, steps_of, ticket_of
from tests.integration.executions.threads import at_once

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def submission(acme: TenantRef, boot: WorkerBoot) -> Submission:
    """A run of a blueprint with two steps."""
    with tenant_scope(acme):
        number = publish(document()).number
        version = BlueprintVersion.objects.get(number=number)
    return Submission(
        execution_id=uuid4(),
        tenant_id=acme.id,
        version_id=version.pk,
        plan=plan(document()),
        inputs='{"n": 1}',
        sealed_inputs=None,
        labels="{}",
        seed=7,
        isolation="shared",
        isolation_reason="asked for",
        catalogue=offered(),
        requested_by="tests",
        request_id="r-1",
        idempotency_key="",
        key_blueprint=0,
        request_hash="",
        replay_of=None,
    )


def offered() -> str:
    """The catalogue of the worker."""
    with platform_scope():
        return current_offer().catalogue


def write(tenant: TenantRef, submission: Submission) -> bool:
    with tenant_scope(tenant):
        return write_submission(submission)


def test_all_of_it_is_written(acme: TenantRef, submission: Submission) -> None:
    assert write(acme, submission)
    run, ticket = run_of(acme, submission.execution_id), ticket_of(submission.execution_id)
    assert (run.state, run.outcome, run.next_step) == (ExecutionState.QUEUED, "", "one")
    assert (run.inputs, run.seed, run.version, run.last_event) == ({"n": 1}, 7, 0, 1)
    assert (run.requested_by, run.request_id) == ("tests", "r-1")
    assert steps_of(acme, run.id) == {"one": "pending", "two": "pending"}
    assert events_of(acme, run.id) == ["execution.queued"]
    assert ticket is not None
    assert (ticket.state, ticket.epoch, ticket.worker_id) == (TicketState.WAITING, 1, None)
    assert (ticket.tenant_id, ticket.time_left) == (acme.id, submission.plan.timeout_s)


def test_the_same_run_again_is_not(acme: TenantRef, submission: Submission) -> None:
    write(acme, submission)
    before = everything_of(acme)
    assert not write(acme, submission)
    assert everything_of(acme) == before


def test_nor_is_another_one_with_its_key(acme: TenantRef, submission: Submission) -> None:
    keyed = replace(submission, idempotency_key="order-1", key_blueprint=1)
    assert write(acme, keyed)
    before = everything_of(acme)
    assert not write(acme, replace(keyed, execution_id=uuid4()))
    assert everything_of(acme) == before
    assert write(acme, replace(keyed, execution_id=uuid4(), key_blueprint=2))


def test_of_two_with_one_key_at_once_one_is_written(
    acme: TenantRef, submission: Submission
) -> None:
    both = [
        replace(submission, execution_id=uuid4(), idempotency_key="order-1", key_blueprint=1)
        for _ in range(2)
    ]
    assert sorted(at_once([partial(write, acme, each) for each in both])) == [False, True]
