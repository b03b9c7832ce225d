"""The reaper: what a lapsed worker held goes on elsewhere or ends; the living are left alone."""

from typing import Any
from uuid import UUID

import pytest
import redis
from django.db.models.functions import Now

from executions.blueprints.plan import plan
from executions.placement.dispatch import send
from executions.placement.models import Ticket, Worker
from executions.placement.registry import HeldPlacement, held_by
from executions.selectors.active_run import load_run
from executions.semantics.decisions import after_step
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links import closing
from executions.worker.links.closing import MAX_LOSSES
from executions.worker.loops import reaper
from executions.worker.loops.reaper import end_boot, reap
from foundation.keyring import UndecryptableError
from isolane.results import Code, StepResult
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import (
    document,
    events_of,
    everything_of,
    let_lapse,
    make_boot,
    make_placed,
    place,
    record,
    run_of,
    start,
    steps_of,
    ticket_of,
)
from tests.integration.executions.threads import at_once

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def lost(boot: WorkerBoot) -> WorkerBoot:
    """A second worker, on which acme's runs are; it will lapse."""
    return make_boot(name="lost@test")


def claimed_run(tenant: TenantRef, boot: WorkerBoot, *keys: str) -> Placement:
    placement = make_placed(tenant, boot, *keys)
    with tenant_scope(tenant):
        claim_step(placement, (keys or ("one",))[0], worker=boot.node_name)
    return placement


def known_boots() -> set[object]:
    with platform_scope():
        return set(Worker.objects.values_list("boot", flat=True))


def lose(tenant: TenantRef, placement: Placement, times: int) -> Placement:
    """Lose the placement's worker again and again at the same step."""
    for number in range(times):
        let_lapse(boot := make_boot(name=f"lost{number}@test"))
        placement = place(tenant, placement.execution_id, boot)
        with tenant_scope(tenant):
            claim_step(placement, "one", worker=boot.node_name)
        reap("w2@test")
    return placement


def test_a_run_that_loses_worker_after_worker_fails(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot
) -> None:
    placement = claimed_run(acme, lost)
    let_lapse(lost)
    reap("w2@test")
    lose(acme, placement, MAX_LOSSES - 2)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED
    lose(acme, placement, 1)
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == (ExecutionState.FAILED, Code.WORKER_LOST)
    assert steps_of(acme, placement.execution_id) == {"one": "failed", "two": "skipped"}
    assert ticket_of(placement.execution_id) is None


def test_a_checkpoint_ends_the_row_of_losses(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot
) -> None:
    placement = claimed_run(acme, lost)
    let_lapse(lost)
    reap("w2@test")
    placement = place(acme, placement.execution_id, boot)
    result = StepResult.succeeded(step="one", attempt=1, output=None)
    with tenant_scope(acme):
        claim_step(placement, "one", worker=boot.node_name)
        assert run_of(acme, placement.execution_id).losses == 1
        decided = after_step(plan(document()), result, seed=7)
        assert write_checkpoint(placement, record(result), decided)
    assert run_of(acme, placement.execution_id).losses == 0


def test_a_cut_run_goes_back_to_the_queue(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot
) -> None:
    placement = claimed_run(acme, lost)
    let_lapse(lost)
    assert reap("w2@test") == 1
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch, ticket.worker_id) == (TicketState.WAITING, 2, None)
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED
    assert steps_of(acme, placement.execution_id) == {"one": "pending", "two": "pending"}
    assert known_boots() == {boot.id}


def test_a_run_whose_outcome_is_set_is_closed(acme: TenantRef, lost: WorkerBoot) -> None:
    placement = claimed_run(acme, lost, "only")
    result = StepResult.succeeded(step="only", attempt=1, output=None)
    with tenant_scope(acme):
        decided = after_step(plan(document("only")), result, seed=7)
        assert write_checkpoint(placement, record(result), decided)
    let_lapse(lost)
    reap("w2@test")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    assert ticket_of(placement.execution_id) is None


def test_a_run_that_was_to_be_cancelled_is(acme: TenantRef, lost: WorkerBoot) -> None:
    placement = claimed_run(acme, lost)
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="ann")
    let_lapse(lost)
    reap("w2@test")
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert steps_of(acme, placement.execution_id) == {"one": "cancelled", "two": "cancelled"}


def test_a_cancel_that_comes_while_it_reaps_is_done_at_the_next_time(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = claimed_run(acme, lost)

    def cancel_after_looking(worker: Worker) -> list[HeldPlacement]:
        held = held_by(worker)
        with tenant_scope(acme):
            request_cancel(placement.execution_id, actor="ann")
        return held

    let_lapse(lost)
    with monkeypatch.context() as patch:
        patch.setattr(reaper, "held_by", cancel_after_looking)
        reap("w2@test")
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING
    reap("w2@test")
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED
    assert known_boots() == {boot.id}


def test_the_lane_of_a_lost_worker_is_deleted(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot, broker: "redis.Redis"
) -> None:
    for host in (boot, lost):
        assert send(make_placed(acme, host))
    assert broker.llen(lost.lane) == 1
    let_lapse(lost)
    reap("w2@test")
    assert broker.exists(lost.lane) == 0
    assert broker.llen(boot.lane) == 1


def test_a_living_worker_is_never_reaped(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot
) -> None:
    claimed_run(acme, lost)
    before = everything_of(acme)
    assert reap("w2@test") == 0
    assert everything_of(acme) == before
    assert known_boots() == {boot.id, lost.id}


def test_twice_is_as_good_as_once(acme: TenantRef, lost: WorkerBoot) -> None:
    claimed_run(acme, lost)
    let_lapse(lost)
    reap("w2@test")
    before = everything_of(acme)
    assert reap("w2@test") == 0
    assert everything_of(acme) == before


def test_who_comes_second_finds_nothing_and_says_nothing(
    acme: TenantRef, boot: WorkerBoot, lost: WorkerBoot
) -> None:
    """Both have seen the lapsed worker, one has already removed it."""
    claimed_run(acme, lost)
    let_lapse(lost)
    with platform_scope():
        seen = Worker.objects.get(boot=lost.id)
    reap("w2@test")
    before = everything_of(acme)
    end_boot(seen, PlacementEnd(reason=EndReason.WORKER_LOST, lost=True))
    assert everything_of(acme) == before
    assert known_boots() == {boot.id}


def test_in_two_places_at_once_each_placement_ends_once(acme: TenantRef, boot: WorkerBoot) -> None:
    for _ in range(5):
        lost = make_boot(name="lost@test")
        placements = [claimed_run(acme, lost) for _ in range(3)]
        let_lapse(lost)
        at_once([lambda: reap("w2@test"), lambda: reap("w3@test")])
        for placement in placements:
            ticket = ticket_of(placement.execution_id)
            assert ticket is not None
            assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
            events = events_of(acme, placement.execution_id)
            assert events.count("placement.lost") == 1
        assert known_boots() == {boot.id}


def test_a_run_that_cannot_be_settled_is_ended_and_costs_nobody_else_his_end(
    acme: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For instance one with sealed values that no key decrypts any more."""
    bad, good = make_boot(name="bad@test"), make_boot(name="good@test")
    unreadable = start(acme, bad, {"guarantee": "at_most_once"}, {})
    others = [claimed_run(acme, bad), claimed_run(acme, good)]
    with tenant_scope(acme):
        claim_step(unreadable, "s1", worker=bad.node_name)
    for worker in (bad, good):
        let_lapse(worker)

    def unread(tenant_id: int, execution_id: UUID) -> Any:
        if execution_id == unreadable.execution_id:
            raise UndecryptableError("no key fits")
        return load_run(tenant_id, execution_id)

    monkeypatch.setattr(closing, "load_run", unread)
    reap("w2@test")
    run = run_of(acme, unreadable.execution_id)
    assert (run.state, run.code) == (ExecutionState.FAILED, Code.OUTCOME_UNKNOWN)
    assert ticket_of(unreadable.execution_id) is None
    for other in others:
        assert getattr(ticket_of(other.execution_id), "state", None) == TicketState.WAITING
    assert known_boots() == {boot.id}


def test_one_that_cannot_be_ended_at_all_stands_in_nobodys_way(
    acme: TenantRef, lost: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, other = claimed_run(acme, lost), claimed_run(acme, lost)
    let_lapse(lost)

    def end(placement: Placement, *args: Any, **options: Any) -> None:
        if placement.execution_id == stuck.execution_id:
            raise ValueError("a fault of ours")
        closing.end_without_link(placement, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(reaper, "end_without_link", end)
        assert reap("w2@test") == 1
    assert getattr(ticket_of(stuck.execution_id), "state", None) == TicketState.PLACED
    assert getattr(ticket_of(other.execution_id), "state", None) == TicketState.WAITING
    assert reap("w2@test") == 1  # it is tried again
    assert getattr(ticket_of(stuck.execution_id), "state", None) == TicketState.WAITING


def test_a_lost_run_whose_time_is_over_ends(acme: TenantRef, lost: WorkerBoot) -> None:
    placement = claimed_run(acme, lost)
    with platform_scope():
        Ticket.objects.filter(pk=placement.execution_id).update(deadline=Now())
    let_lapse(lost)
    reap("w2@test")
    assert run_of(acme, placement.execution_id).state == ExecutionState.TIMED_OUT
