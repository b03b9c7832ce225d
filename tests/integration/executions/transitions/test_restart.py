"""Restarting: a new placement in the same slot, and no attempt is used up."""

import pytest
from django.db.models.functions import Now

from executions.models import Execution, Step
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, TicketState
from executions.transitions.cancel import cancel
from executions.transitions.restart import restart
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    events_of,
    everything_of,
    make_placed,
    ticket_of,
)
from tests.integration.executions.transitions.runs import retry

pytestmark = pytest.mark.usefixtures("neighbour")


def test_a_restart_raises_the_epoch_and_keeps_slot_and_deadline(
    acme: TenantRef, claimed: Placement
) -> None:
    before = ticket_of(claimed.execution_id)
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.WORKER_STOPPED) == 2
    after = ticket_of(claimed.execution_id)
    assert before is not None
    assert after is not None
    assert (after.state, after.worker_id, after.epoch) == (TicketState.PLACED, claimed.boot, 2)
    assert after.deadline == before.deadline
    assert events_of(acme, claimed.execution_id)[-1] == "context.restarted"
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.WORKER_STOPPED) is None


def test_nothing_is_restarted_that_is_to_be_cancelled_is_over_or_waits(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    cancelled, over, waiting, foreign = (make_placed(acme, boot) for _ in range(4))
    with tenant_scope(acme):
        cancel(cancelled.execution_id, message="")
        set_outcome(over, ExecutionState.FAILED, code="", message="")
        Execution.objects.filter(pk=waiting.execution_id).update(wake_at=Now())
        before = everything_of(acme)
        for placement in (cancelled, over, waiting):
            assert restart(placement, reason=EndReason.WORKER_STOPPED) is None
    with tenant_scope(globex):
        assert restart(foreign, reason=EndReason.WORKER_STOPPED) is None
    assert everything_of(acme) == before


def test_a_step_that_was_claimed_for_the_dead_runtime_uses_no_attempt(
    acme: TenantRef, claimed: Placement
) -> None:
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.RUNTIME_ENDED) == 2
        step = Step.objects.get(path="one")
    assert (step.state, step.attempt) == ("pending", 0)


def test_a_step_that_is_to_be_tried_again_stays_so(acme: TenantRef, claimed: Placement) -> None:
    retry(acme, claimed)
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.RUNTIME_ENDED) == 2
        step = Step.objects.get(path="one")
    assert (step.state, step.attempt) == ("retrying", 1)
    assert step.retry_at is not None
