"""The next step is claimed with a checkpoint, and its link takes that claim; what happens if none comes to take it."""

import pytest
from celery.exceptions import Ignore

from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links import claiming
from executions.worker.links.runner import LinkRunner
from executions.worker.loops import lease
from executions.worker.loops.lease import LeaseLoop
from executions.worker.loops.reaper import reap
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    events_of,
    let_lapse,
    make_boot,
    place,
    resend_after,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.worker.driving import drive, epochs_closed, run_link, runs_of

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

TWO: tuple[dict[str, object], ...] = ({}, {})


@pytest.fixture(autouse=True)
def _idle_at_the_second_look(boot: WorkerBoot) -> None:
    resend_after(boot, 1e-6)


def steps_run(boot: WorkerBoot, placement: Placement) -> list[tuple[str, int]]:
    return [(run.step, run.attempt) for run in runs_of(boot, placement)]


def test_the_next_link_asks_the_database_for_no_claim(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = start(acme, boot, *TWO)
    assert run_link(links, placement, "s1")
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "running"}

    def claimed_again(*_: object, **__: object) -> None:
        raise AssertionError("it was claimed again")

    monkeypatch.setattr(claiming, "claim_step", claimed_again)
    run_link(links, placement, "s2")
    assert steps_run(boot, placement) == [("s1", 1), ("s2", 1)]
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


def test_of_the_same_message_twice_one_takes_the_claim(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, *TWO)
    run_link(links, placement, "s1")
    links.begin("first", placement, "s2")
    links.begin("second", placement, "s2")
    with pytest.raises(Ignore):
        links.run("second", "s2", [])
    links.end("second")
    links.run("first", "s2", [])
    links.end("first")
    assert steps_run(boot, placement) == [("s1", 1), ("s2", 1)]


@pytest.mark.parametrize("guarantee", ["at_most_once", "best_effort"])
def test_what_may_not_run_again_is_claimed_by_its_own_link(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, guarantee: str
) -> None:
    """Else a worker lost between two links would end a step that nobody had begun."""
    other = make_boot(name="w2@test")
    placement = start(acme, other, {}, {"guarantee": guarantee})
    run_link(LinkRunner(other), placement, "s1")
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "pending"}
    let_lapse(other)
    reap("w2@test")
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert steps_run(boot, placement) == [("s2", 1)]


def test_a_lost_message_is_sent_again_and_nothing_else_is_lost(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Placement] = []

    def note(placement: Placement, *, timeout: float) -> bool:
        sent.append(placement)
        return True

    monkeypatch.setattr(lease, "send", note)
    placement = start(acme, boot, *TWO)
    run_link(links, placement, "s1")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert (placement.execution_id, 1) in [(placed.execution_id, placed.epoch) for placed in sent]
    run_link(links, placement, "s2")
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.losses) == (ExecutionState.SUCCEEDED, 0)
    assert events_of(acme, placement.execution_id).count("step.started") == 2


def test_a_lost_worker_uses_no_attempt_of_a_step_that_nobody_began(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    other = make_boot(name="w2@test")
    placement = start(acme, other, *TWO)
    run_link(LinkRunner(other), placement, "s1")
    let_lapse(other)
    reap("w2@test")
    step, ticket = step_of(acme, placement.execution_id, "s2"), ticket_of(placement.execution_id)
    assert ticket is not None
    assert (step.state, step.attempt, ticket.state) == ("pending", 0, TicketState.WAITING)
    again = place(acme, placement.execution_id, boot)
    assert drive(acme, links, again).state == ExecutionState.SUCCEEDED
    assert steps_run(boot, placement) == [("s2", 1)]


def test_a_cancel_between_two_links_ends_the_step_that_was_claimed(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {}, {}, {})
    run_link(links, placement, "s1")
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert steps_of(acme, placement.execution_id) == {
        "s1": "succeeded", "s2": "cancelled", "s3": "cancelled",
    }  # fmt: skip
    links.begin("late", placement, "s2")
    with pytest.raises(Ignore):
        links.run("late", "s2", [])
    links.end("late")
    assert steps_run(boot, placement) == [("s1", 1)]


@pytest.mark.parametrize("how", ["draining", "stale lease", "lost"])
def test_a_claim_is_not_taken_by_a_worker_that_must_not_begin(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, how: str
) -> None:
    placement = start(acme, boot, *TWO)
    run_link(links, placement, "s1")
    context = boot.contexts.get(placement.key)
    assert context is not None
    if how == "draining":
        boot.draining.set()
    elif how == "lost":
        context.lose()
    else:
        boot.renewed_at -= boot.clocks.self_fence + 1
    links.begin("next", placement, "s2")
    with pytest.raises(Ignore):
        links.run("next", "s2", [])
    links.end("next")
    assert steps_run(boot, placement) == [("s1", 1)]


def test_a_step_that_was_skipped_leads_to_the_next_claim_too(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, {"when": "${inputs.no}"}, {})
    run_link(links, placement, "s1")
    assert steps_of(acme, placement.execution_id) == {"s1": "skipped", "s2": "running"}


def die_idle(boot: WorkerBoot, placement: Placement) -> None:
    context = boot.contexts.get(placement.key)
    assert context is not None
    assert context.runtime is not None
    context.runtime.kill()


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once"])
def test_a_runtime_that_dies_between_two_steps_fails_neither(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, guarantee: str
) -> None:
    """The one has ended, the other has not begun: it runs in a new context, and no attempt is used."""
    placement = start(acme, boot, {}, {"guarantee": guarantee}, {})
    run_link(links, placement, "s1")
    die_idle(boot, placement)
    with pytest.raises(Ignore):
        run_link(links, placement, "s2")
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.PLACED, 2)
    step = step_of(acme, placement.execution_id, "s2")
    assert (step.state, step.attempt) == ("pending", 0)
    run = drive(acme, links, placement)
    assert (run.state, run.losses) == (ExecutionState.SUCCEEDED, 0)
    assert steps_run(boot, placement) == [("s1", 1), ("s2", 1), ("s3", 1)]
    assert epochs_closed(boot, placement) == [1, 2]
    assert events_of(acme, placement.execution_id).count("context.restarted") == 1


def test_in_a_new_context_the_step_is_sent_whatever_became_of_the_runtime(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    """Else a run whose runtimes die at once might be begun anew for ever."""
    placement = start(acme, boot, *TWO)
    links.begin("s1", placement, "s1")
    die_idle(boot, placement)
    links.run("s1", "s1", [])
    links.end("s1")
    assert steps_run(boot, placement) == [("s1", 1)]
