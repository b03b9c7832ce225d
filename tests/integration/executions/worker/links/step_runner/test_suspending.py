"""Asking a person: the run is suspended without a slot, and nobody can answer before its context is gone."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from executions.models import Approval, ExecutionEvent
from executions.placement.models import Ticket
from executions.services.waking import wake_due
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.lease import LeaseLoop
from executions.worker.loops.reaper import reap
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import (
    due_of,
    events_of,
    held_by,
    let_lapse,
    make_boot,
    resend_after,
    run_of,
    set_quota,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.worker.driving import (
    asking,
    echo,
    epochs_closed,
    run_link,
    script,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

ASKS = {"uses": "flaky"}
NEXT = {"with": {"ok": "${steps.s1.approved}"}}


def approvals_of(tenant: TenantRef, placement: Placement) -> list[Approval]:
    with tenant_scope(tenant):
        found = Approval.objects.filter(execution_id=placement.execution_id)
        return list(found.order_by("number"))


def assert_suspended(tenant: TenantRef, boot: WorkerBoot, placement: Placement) -> None:
    """It waits for a person without a slot, and nothing of it is left on the worker."""
    run, ticket = run_of(tenant, placement.execution_id), ticket_of(placement.execution_id)
    due, (asked,) = due_of(placement.execution_id), approvals_of(tenant, placement)
    assert ticket is not None
    assert due is not None
    assert (run.state, run.outcome, run.next_step) == ("suspended", "", "s1")
    assert (ticket.state, ticket.worker_id) == (TicketState.PARKED, None)
    assert (due.kind, due.tenant_id) == ("approval", tenant.id)
    assert run.wake_at == due.at == asked.expires_at
    assert (asked.number, asked.step, asked.prompt, asked.state) == (1, "s1", "Pay?", "open")
    assert step_of(tenant, placement.execution_id, "s1").state == "suspended"
    assert placement.execution_id not in held_by(boot)
    assert boot.contexts.get(placement.key) is None
    assert events_of(tenant, placement.execution_id)[-1] == "execution.suspended"


@pytest.mark.parametrize("express", [False, True])
def test_a_question_suspends_the_run_and_frees_its_slot(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, express: bool
) -> None:
    set_quota(acme, 1)
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT, express=express)
    assert not run_link(links, placement, "s1")
    assert_suspended(acme, boot, placement)
    assert epochs_closed(boot, placement) == [1]
    assert wake_due() == 0
    following = start(acme, boot, {})
    assert following.execution_id in held_by(boot)
    with tenant_scope(acme):
        last = ExecutionEvent.objects.filter(execution_id=placement.execution_id).order_by(
            "sequence"
        )
        assert last[len(last) - 1].step == "s1"


def test_nobody_can_answer_while_the_context_is_open(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT)
    links.begin("s1", placement, "s1")
    assert not links.run("s1", "s1", [])
    assert approvals_of(acme, placement) == []
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    links.end("s1")
    assert_suspended(acme, boot, placement)


def test_a_worker_that_is_lost_between_the_checkpoint_and_the_close_leaves_a_suspended_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    other = make_boot(
        script={"flaky": asking(), "pure": echo, "rescue": echo, "work": echo}, name="w2@test"
    )
    placement = start(acme, other, ASKS, NEXT)
    theirs = LinkRunner(other)
    theirs.begin("s1", placement, "s1")
    assert not theirs.run("s1", "s1", [])
    let_lapse(other)
    assert reap("w2@test") == 1
    assert_suspended(acme, boot, placement)


def test_a_question_whose_close_was_not_written_is_put_by_the_loop(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT)
    resend_after(boot, 1e-6)
    monkeypatch.setattr("executions.worker.links.runner.close_context", lambda boot, context: None)
    run_link(links, placement, "s1")  # torn down nowhere, written by nobody
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    LeaseLoop(boot).turn()
    LeaseLoop(boot).turn()
    assert_suspended(acme, boot, placement)


def test_a_cancel_between_the_checkpoint_and_the_close_is_not_lost(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT)
    links.begin("s1", placement, "s1")
    assert not links.run("s1", "s1", [])
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    links.end("s1")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.question, run.wake_at) == ("cancelled", "", None)
    assert steps_of(acme, placement.execution_id) == {"s1": "cancelled", "s2": "cancelled"}
    assert approvals_of(acme, placement) == []
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)


def test_a_suspended_run_that_is_cancelled_ends_at_once_and_its_question_is_withdrawn(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT)
    run_link(links, placement, "s1")
    with tenant_scope(acme):
        assert request_cancel(placement.execution_id, actor="ann") == ExecutionState.CANCELLED
    run, (asked,) = run_of(acme, placement.execution_id), approvals_of(acme, placement)
    assert (run.state, run.question, run.wake_at) == ("cancelled", "", None)
    assert (asked.state, asked.answered_by) == ("withdrawn", "")
    assert steps_of(acme, placement.execution_id) == {"s1": "cancelled", "s2": "cancelled"}
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert wake_due() == 0


def test_the_time_a_person_takes_is_not_the_runs(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking())
    placement = start(acme, boot, ASKS, NEXT, timeout="60s")
    run_link(links, placement, "s1")
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.deadline, ticket.time_left > 50) == (None, True)
    with platform_scope():
        Ticket.objects.filter(pk=placement.execution_id).update(
            waiting_since=Now() - timedelta(hours=2)
        )
    LeaseLoop(boot).turn()
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED


def test_what_the_step_set_is_kept_while_a_person_is_asked(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking(colour="red"))
    placement = start(acme, boot, ASKS, NEXT)
    run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).variables == {"colour": "red"}
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.output, step.finished_at) == (None, None)
