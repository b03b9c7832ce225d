"""An unanswered question fails its step, and sensitive values are masked in question and answer."""

import json

import psycopg
import pytest

from executions.models import Execution
from executions.selectors.executions import execution
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import AlreadyAnswered, answer, expire
from executions.services.waking import wake_due
from executions.states import ExecutionState, TicketState
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.results import Code
from resources.runtimes.stub import fails
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    due_of,
    everything_of,
    place,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.services.approvals.conftest import (
    ASKS,
    NEXT,
    YES,
    Suspend,
    approval_of,
    public_id,
)
from tests.integration.executions.worker.driving import (
    asking,
    drive,
    echo,
    let_its_time_come,
    run_link,
    runs_of,
    script,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


# --- silence
def test_what_nobody_answers_fails_its_step_and_under_abort_the_run(
    acme: TenantRef, suspended: Suspend
) -> None:
    placement = suspended()
    assert let_its_time_come(acme, placement) == 1
    run, step = run_of(acme, placement.execution_id), step_of(acme, placement.execution_id, "s1")
    assert (run.state, run.code) == ("timed_out", "TIMEOUT")
    assert (step.state, step.code) == ("failed", "TIMEOUT")
    assert step.message.startswith("Nobody answered by ")
    assert steps_of(acme, placement.execution_id)["s2"] == "skipped"
    asked = approval_of(acme, placement)
    assert (asked.state, asked.answered_by, asked.answered_at is None) == ("expired", "", False)
    assert (ticket_of(placement.execution_id), due_of(placement.execution_id)) == (None, None)
    assert wake_due() == 0


def test_silence_is_a_failure_that_continue_passes(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
) -> None:
    placement = suspended({**ASKS, "on_failure": "continue"}, NEXT)
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert steps_of(acme, placement.execution_id) == {"s1": "failed", "s2": "skipped"}


def test_retry_asks_again(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
) -> None:
    placement = suspended({**ASKS, "on_failure": "retry"}, NEXT)
    let_its_time_come(acme, placement)
    run, step = run_of(acme, placement.execution_id), step_of(acme, placement.execution_id, "s1")
    assert (run.state, step.state, step.attempt) == ("queued", "retrying", 1)
    assert step.retry_at is not None
    let_its_time_come(acme, placement)  # the backoff's
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "s1")
    asked = approval_of(acme, placement, 2)
    assert (asked.state, asked.step) == ("open", "s1")
    assert step_of(acme, placement.execution_id, "s1").attempt == 2
    answer(acme, public_id(placement), 2, YES)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_a_long_backoff_after_silence_is_waited_for_without_a_slot(
    acme: TenantRef, suspended: Suspend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TIMEOUT: 61_000})
    placement = suspended({**ASKS, "on_failure": "retry"}, NEXT)
    let_its_time_come(acme, placement)
    run, ticket = run_of(acme, placement.execution_id), ticket_of(placement.execution_id)
    due = due_of(placement.execution_id)
    assert ticket is not None
    assert due is not None
    assert (run.state, ticket.state, due.kind) == ("waiting", TicketState.PARKED, "wake")
    assert due.at == run.wake_at
    let_its_time_come(acme, placement)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_recover_runs_its_node_after_silence(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, suspended: Suspend
) -> None:
    script(boot, mend=echo)
    recover = {"uses": "mend", "with": {"why": "${error.code}"}}
    placement = suspended({**ASKS, "on_failure": "recover", "recover": recover}, NEXT)
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.output) == ("succeeded", "TIMEOUT", {"why": "TIMEOUT"})


def test_a_recovery_node_may_ask_and_the_step_keeps_what_it_failed_with(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, ask=asking(), flaky=fails(Code.UNKNOWN_ERROR, "broke"), work=echo)
    placement = start(
        acme, boot, {"uses": "flaky", "on_failure": "recover", "recover": {"uses": "ask"}}, NEXT
    )
    run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED
    answer(acme, public_id(placement), 1, YES)
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.message, step.cause) == (
        "succeeded", "UNKNOWN_ERROR", "broke", "recovered",
    )  # fmt: skip
    assert step.output == YES.output


def test_an_answer_that_comes_too_late_is_refused_though_nobody_has_noted_the_end(
    acme: TenantRef, suspended: Suspend, superuser: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    placement = suspended()
    superuser.execute(
        f"UPDATE {acme.schema}.executions_approval SET expires_at = now() - interval '1 second'"
    )
    with pytest.raises(AlreadyAnswered, match="time to be answered is over"):
        answer(acme, public_id(placement), 1, YES)
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUSPENDED


def test_nothing_expires_before_its_time_or_twice(acme: TenantRef, suspended: Suspend) -> None:
    placement = suspended()
    before = everything_of(acme)
    with tenant_scope(acme):
        assert not expire(acme.id, placement.execution_id)
    assert everything_of(acme) == before
    let_its_time_come(acme, placement)
    with tenant_scope(acme):
        assert not expire(acme.id, placement.execution_id)


# --- what is sensitive
def test_what_is_sensitive_is_masked_in_the_question_and_in_the_answer(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, ask=asking("Use hunter2 for it?"), work=echo)
    placement = start(
        acme,
        boot,
        {"uses": "ask", "sensitive": ["comment"]},
        {"with": {"said": "${steps.s1.comment}"}},
        given={"password": "hunter2"},
        inputs={"properties": {"password": {"type": "string", "sensitive": True}}},
    )
    run_link(links, placement, "s1")
    asked = approval_of(acme, placement)
    assert asked.prompt == "Use *** for it?"
    reply = ApprovalReply(approved=True, by="user:ann", comment="the pin is 9917 4411")
    answer(acme, public_id(placement), 1, reply)
    assert approval_of(acme, placement).comment == "***"
    with tenant_scope(acme):
        rows = json.dumps(list(Execution.objects.values()), default=str)
        shown = execution(public_id(placement))
        rows += json.dumps(list(shown.steps.values()), default=str)
    assert "9917" not in rows
    assert "hunter2" not in rows
    again = place(acme, placement.execution_id, boot)
    drive(acme, links, again)
    assert runs_of(boot, placement)[-1].parameters == {"said": "the pin is 9917 4411"}
