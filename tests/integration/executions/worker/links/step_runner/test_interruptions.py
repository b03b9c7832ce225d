"""Interruptions of a step that runs or waits: cancels, drains, dying runtimes and lost workers."""

from concurrent.futures import Future
from typing import Any

import pytest
import redis
from celery.exceptions import Ignore

from executions.models import ExecutionEvent
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.loops.lease import LeaseLoop
from executions.worker.loops.reaper import reap
from isolane.results import Code
from resources.placement import Placement
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    backend_of,
    costs_of,
    events_of,
    held_by,
    let_lapse,
    make_boot,
    place,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.threads import in_thread
from tests.integration.executions.worker.driving import (
    costing,
    doing,
    drive,
    dying,
    echo,
    epochs_closed,
    in_turn,
    run_link,
    runs_of,
    script,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

TRANSIENT = fails(Code.TRANSIENT_ERROR, "try again")
RESCUE = {"uses": "rescue", "with": {"why": "${error.code}"}}
RETRIED = {"uses": "flaky", "on_failure": "retry"}


# --- while a backoff is waited for, context open
@pytest.fixture
def waiting(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> tuple[Placement, "Future[bool]"]:
    """A link that waits for half a minute before its step's second attempt."""
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TRANSIENT_ERROR: 20_000})
    script(boot, flaky=in_turn(TRANSIENT, succeeds(2)))
    placement = start(acme, boot, RETRIED, {})
    link = in_thread(lambda: run_link(links, placement, "s1"))
    wait_for(lambda: step_of(acme, placement.execution_id, "s1").state == "retrying", "the backoff")
    assert placement.execution_id in held_by(boot)
    return placement, link


def test_a_cancel_ends_a_backoff_at_once(
    acme: TenantRef, boot: WorkerBoot, waiting: tuple[Placement, "Future[bool]"]
) -> None:
    placement, link = waiting
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    LeaseLoop(boot).turn()
    with pytest.raises(StepFailed, match="CANCELLED"):
        link.result(timeout=5)
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code, run.message) == ("cancelled", "CANCELLED", "Cancelled by ann.")
    assert steps_of(acme, placement.execution_id) == {"s1": "cancelled", "s2": "cancelled"}
    assert events_of(acme, placement.execution_id)[-2:] == ["step.cancelled", "execution.cancelled"]
    assert ticket_of(placement.execution_id) is None
    assert epochs_closed(boot, placement) == [1]
    assert len(runs_of(boot, placement)) == 1


def test_a_drain_ends_a_backoff_and_its_time_stays(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    waiting: tuple[Placement, "Future[bool]"],
) -> None:
    placement, link = waiting
    before = step_of(acme, placement.execution_id, "s1")
    boot.draining.set()
    with pytest.raises(Ignore):
        link.result(timeout=5)
    LeaseLoop(boot).turn()
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    after = step_of(acme, placement.execution_id, "s1")
    assert (after.state, after.attempt, after.retry_at) == ("pending", 1, before.retry_at)
    assert after.retry_at is not None
    assert run_of(acme, placement.execution_id).losses == 0


def test_a_lost_placement_ends_a_backoff_and_writes_nothing(
    acme: TenantRef, boot: WorkerBoot, waiting: tuple[Placement, "Future[bool]"]
) -> None:
    placement, link = waiting
    context = boot.contexts.get(placement.key)
    assert context is not None
    context.lose()
    with pytest.raises(Ignore):
        link.result(timeout=5)
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    assert boot.contexts.get(placement.key) is None


# --- while a recovery runs
def test_a_run_that_is_cancelled_while_it_recovers_says_so(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR), rescue=fails(Code.CANCELLED, "stopped"))
    step = {"uses": "flaky", "on_failure": "recover", "recover": RESCUE}
    placement = start(acme, boot, step, {})
    run = drive(acme, links, placement)
    assert (run.state, run.code) == ("cancelled", "CANCELLED")


# --- a runtime that dies
@pytest.mark.parametrize(
    ("mode", "steps", "uses"),
    [
        ({"on_failure": "continue"}, {"s1": "failed", "s2": "succeeded"}, ["flaky", "work"]),
        ({"on_failure": "retry"}, {"s1": "succeeded", "s2": "succeeded"}, ["flaky"] * 2 + ["work"]),
        (
            {"on_failure": "recover", "recover": RESCUE},
            {"s1": "succeeded", "s2": "succeeded"},
            ["flaky", "rescue", "work"],
        ),
    ],
)
@pytest.mark.parametrize("express", [False, True])
def test_a_runtime_that_dies_is_followed_by_another_in_the_same_slot(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    broker: "redis.Redis",
    mode: dict[str, Any],
    steps: dict[str, str],
    uses: list[str],
    express: bool,
) -> None:
    script(boot, flaky=in_turn(dying(boot, acme, Code.TIMEOUT), succeeds(2)), rescue=echo)
    placement = start(acme, boot, {"uses": "flaky", **mode}, {}, express=express)
    assert not run_link(links, placement, "s1")
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch, ticket.worker_id) == ("placed", 2, boot.id)
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    assert events_of(acme, placement.execution_id)[-1] == "context.restarted"
    assert broker.llen(boot.lane) == 1
    assert epochs_closed(boot, placement) == [1]
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert steps_of(acme, placement.execution_id) == steps
    assert [run.uses for run in runs_of(boot, placement)] == uses
    assert epochs_closed(boot, placement) == [1, 2]


def test_a_runtime_that_dies_at_the_end_of_a_run_is_not_followed(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, broker: "redis.Redis"
) -> None:
    script(boot, flaky=dying(boot, acme))
    for mode in ("abort", "continue"):
        placement = start(acme, boot, {"uses": "flaky", "on_failure": mode})
        drive(acme, links, placement)
        assert ticket_of(placement.execution_id) is None
        assert "context.restarted" not in events_of(acme, placement.execution_id)
    assert broker.llen(boot.lane) == 0


def test_a_cancel_that_comes_while_a_dead_runtime_is_closed_ends_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"uses": "flaky", "on_failure": "continue"}, {})

    def ask() -> None:
        with tenant_scope(acme):
            request_cancel(placement.execution_id, actor="ann")

    script(boot, flaky=doing(ask, dying(boot, acme)))
    assert not run_link(links, placement, "s1")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert ticket_of(placement.execution_id) is None


# --- a worker that is lost in the middle of a step
@pytest.fixture
def lost(boot: WorkerBoot) -> WorkerBoot:
    """A second worker with the same nodes, which will be lost."""
    return make_boot(backend=backend_of(boot), name="lost@test")


def lose(tenant: TenantRef, lost: WorkerBoot, *steps: dict[str, Any], **fields: Any) -> Placement:
    """The worker is gone while the run's first step is under way."""
    placement = start(tenant, lost, *steps, **fields)
    LinkRunner(lost).begin("s1", placement, "s1")
    let_lapse(lost)
    assert reap("w2@test") == 1
    return placement


def test_a_cut_step_runs_again_and_no_attempt_is_used(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, lost: WorkerBoot
) -> None:
    script(boot, flaky=in_turn(costing(1, TRANSIENT), costing(2, succeeds(2))))
    placement = lose(acme, lost, {**RETRIED, "retry": {"attempts": 2}}, {})
    assert step_of(acme, placement.execution_id, "s1").attempt == 0
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert step_of(acme, placement.execution_id, "s1").attempt == 2
    assert costs_of(acme, placement.execution_id) == [
        ("s1", 1, "tokens", 1),
        ("s1", 2, "tokens", 2),
    ]


@pytest.mark.parametrize(
    ("mode", "state", "steps"),
    [
        ({"on_failure": "abort"}, "failed", {"s1": "failed", "s2": "skipped"}),
        ({"on_failure": "continue"}, "queued", {"s1": "failed", "s2": "pending"}),
        (
            {"on_failure": "recover", "recover": RESCUE},
            "queued",
            {"s1": "pending", "s2": "pending"},
        ),
    ],
)
def test_a_step_that_runs_at_most_once_and_is_cut_has_an_unknown_outcome(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    lost: WorkerBoot,
    mode: dict[str, Any],
    state: str,
    steps: dict[str, str],
) -> None:
    script(boot, rescue=echo)
    placement = lose(acme, lost, {"uses": "flaky", "guarantee": "at_most_once", **mode}, {})
    run = run_of(acme, placement.execution_id)
    assert run.state == state
    assert steps_of(acme, placement.execution_id) == steps
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.code, step.attempt) == ("OUTCOME_UNKNOWN", 1)
    if state == "failed":
        assert (run.code, ticket_of(placement.execution_id)) == ("OUTCOME_UNKNOWN", None)
        return
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    uses = [asked.uses for asked in runs_of(boot, placement)]
    assert "flaky" not in uses
    if "recover" in mode:
        assert uses == ["rescue", "work"]
        assert step_of(acme, placement.execution_id, "s1").output == {"why": "OUTCOME_UNKNOWN"}


@pytest.mark.parametrize("following", [0, 1])
def test_a_step_of_best_effort_that_is_cut_has_failed_and_the_run_goes_on(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, lost: WorkerBoot, following: int
) -> None:
    step = {"uses": "flaky", "guarantee": "best_effort"}
    placement = lose(acme, lost, step, *[{}] * following)
    assert steps_of(acme, placement.execution_id)["s1"] == "failed"
    if following:
        again = place(acme, placement.execution_id, boot)
        drive(acme, links, again)
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == ("succeeded", "")
    assert [asked.uses for asked in runs_of(boot, placement)] == ["work"] * following
    assert ticket_of(placement.execution_id) is None


def test_a_run_that_ends_with_a_cut_step_has_its_outputs(acme: TenantRef, lost: WorkerBoot) -> None:
    step = {"uses": "flaky", "guarantee": "best_effort"}
    placement = lose(acme, lost, step, outputs={"given": "${inputs.x}"}, given={"x": 1})
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.outputs) == ("succeeded", {"given": 1})


def test_a_recovery_that_is_cut_runs_again(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, lost: WorkerBoot
) -> None:
    """The guarantee is the step's, not its recovery's."""
    step = {
        "uses": "flaky",
        "guarantee": "at_most_once",
        "on_failure": "recover",
        "recover": RESCUE,
    }

    def lose_it() -> None:
        let_lapse(lost)
        reap("w2@test")

    script(boot, flaky=fails(Code.UNKNOWN_ERROR))
    placement = start(acme, lost, step)
    script(boot, rescue=doing(lose_it, echo))
    with pytest.raises(Ignore, match="fence"):
        run_link(LinkRunner(lost), placement, "s1")
    assert steps_of(acme, placement.execution_id) == {"s1": "pending"}
    script(boot, rescue=echo)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert [run.uses for run in runs_of(boot, placement)] == ["flaky", "rescue", "rescue"]


def test_what_a_cut_attempt_cost_is_said_to_be_unbilled(acme: TenantRef, lost: WorkerBoot) -> None:
    placement = lose(acme, lost, {"uses": "flaky", "guarantee": "at_most_once"})
    with tenant_scope(acme):
        ended = ExecutionEvent.objects.get(execution_id=placement.execution_id, kind="step.failed")
    assert (ended.data["code"], ended.data["unbilled"]) == ("OUTCOME_UNKNOWN", True)
