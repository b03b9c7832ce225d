"""The worker's loop, turn by turn: it renews, repeats, cancels, hands back and, when it must, lets go."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import pytest
import redis
from celery.exceptions import Ignore
from django.db import OperationalError, connection

from executions.models import Step
from executions.placement.dispatch import send
from executions.placement.models import Worker
from executions.placement.registry import HeldPlacement, renew
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.transitions.claim import claim_step
from executions.transitions.close import close_execution
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links import claiming, closing
from executions.worker.links.runner import LinkRunner
from executions.worker.loops import lease
from executions.worker.loops.lease import EXIT_FENCED, LeaseLoop
from isolane.limits import Usage
from resources.placement import Placement
from resources.runtimes.base import Runtime
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import (
    backend_of,
    events_of,
    everything_of,
    let_lapse,
    make_placed,
    resend_after,
    run_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.threads import in_thread
from tests.integration.executions.worker.driving import run_link

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture(autouse=True)
def _idle_at_the_second_look(boot: WorkerBoot) -> None:
    resend_after(boot, 1e-6)


@pytest.fixture
def exits() -> list[int]:
    """The codes with which the process would have ended."""
    return []


@pytest.fixture
def loop(boot: WorkerBoot, exits: list[int]) -> LeaseLoop:
    return LeaseLoop(boot, exit_process=exits.append)


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return make_placed(acme, boot)


def ask_to_cancel(tenant: TenantRef, placement: Placement) -> None:
    with tenant_scope(tenant):
        request_cancel(placement.execution_id, actor="ann")


def runtime_of(boot: WorkerBoot, placement: Placement) -> Runtime:
    context = boot.contexts.get(placement.key)
    assert context is not None
    assert context.runtime is not None
    return context.runtime


def state_of(tenant: TenantRef, placement: Placement) -> str:
    return run_of(tenant, placement.execution_id).state


# --- renewing
def test_a_turn_renews_the_lease_by_the_databases_clock(
    boot: WorkerBoot, loop: LeaseLoop, exits: list[int]
) -> None:
    with platform_scope():
        before = Worker.objects.get(boot=boot.id).lease_until
    boot.renewed_at -= 5
    loop.turn()
    with platform_scope():
        worker = Worker.objects.get(boot=boot.id)
    assert worker.lease_until > before
    assert not worker.draining
    assert boot.lease_is_fresh()
    assert exits == []


def test_a_draining_worker_says_so(boot: WorkerBoot, loop: LeaseLoop) -> None:
    boot.draining.set()
    loop.turn()
    with platform_scope():
        assert Worker.objects.get(boot=boot.id).draining


@pytest.mark.parametrize("gone", [True, False])
def test_a_lease_that_is_no_longer_ours_ends_the_process(
    acme: TenantRef,
    globex: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    exits: list[int],
    placement: Placement,
    gone: bool,
) -> None:
    """A lapsed lease is never renewed, whether or not the reaper has come already."""
    links.begin("one", placement, "one")
    if gone:
        boot.id = UUID(int=0)
    else:
        let_lapse(boot)
    before = everything_of(acme)
    loop.turn()
    assert exits == [EXIT_FENCED]
    assert not runtime_of(boot, placement).alive
    with pytest.raises(Ignore):
        links.run("one", "one", [])
    assert everything_of(acme) == before


def test_without_a_database_for_too_long_the_runtimes_are_killed(
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links.begin("one", placement, "one")
    runtime = runtime_of(boot, placement)
    alive: list[bool] = []

    def no_database(*_: object, **__: object) -> None:
        alive.append(runtime.alive)
        if len(alive) == 2:
            boot.renewed_at -= boot.clocks.self_fence
        if len(alive) == 3:
            loop._stopping.set()
        raise OperationalError("gone")

    monkeypatch.setattr(lease, "renew", no_database)
    in_thread(loop.run).result(timeout=20)
    assert alive == [True, True, False]
    assert not boot.lease_is_fresh()


# --- closing again
def test_a_close_that_could_not_be_written_is_repeated(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_once(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise OperationalError("gone")

    run_link(links, placement, "one")
    links.begin("two", placement, "two")
    links.run("two", "two", [])
    monkeypatch.setattr(closing, "close_execution", fail_once)
    with pytest.raises(OperationalError):
        links.end("two")
    assert state_of(acme, placement) == ExecutionState.RUNNING
    loop.turn()
    assert state_of(acme, placement) == ExecutionState.SUCCEEDED
    assert ticket_of(placement.execution_id) is None
    assert boot.contexts.get(placement.key) is None
    assert events_of(acme, placement.execution_id).count("execution.succeeded") == 1


def test_a_close_that_was_written_without_an_answer_leaves_no_context_behind(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lose_the_answer(placement: Placement, _: object, *, usage: Usage) -> None:
        close_execution(placement, usage=usage)
        raise OperationalError("gone")

    backend_of(boot).usage = Usage(cpu_seconds=0.25, peak_ram_mb=30)
    monkeypatch.setattr(closing, "close_execution", lose_the_answer)
    run_link(links, placement, "one")
    with pytest.raises(OperationalError):
        run_link(links, placement, "two")
    loop.turn()
    assert boot.contexts.get(placement.key) is None
    assert state_of(acme, placement) == ExecutionState.SUCCEEDED
    assert run_of(acme, placement.execution_id).cpu_seconds == 0.25  # counted once


# --- cancelling
def test_cancelling_reaches_the_step_that_runs(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, loop: LeaseLoop, placement: Placement
) -> None:
    links.begin("one", placement, "one")
    context = boot.contexts.get(placement.key)
    assert context is not None
    loop.turn()
    assert not context.cancelled.is_set()
    ask_to_cancel(acme, placement)
    loop.turn()
    assert context.cancelled.is_set()
    assert state_of(acme, placement) == ExecutionState.RUNNING


@pytest.mark.parametrize("begun", [True, False])
def test_cancelling_with_no_link_active_ends_the_run_at_once(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    begun: bool,
) -> None:
    if begun:
        run_link(links, placement, "one")
    ask_to_cancel(acme, placement)
    loop.turn()
    loop.turn()
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == (ExecutionState.CANCELLED, "CANCELLED")
    first = "succeeded" if begun else "cancelled"
    assert steps_of(acme, placement.execution_id) == {"one": first, "two": "cancelled"}
    assert ticket_of(placement.execution_id) is None
    assert boot.contexts.get(placement.key) is None
    assert len(backend_of(boot).closed) == begun


def test_a_link_that_hangs_where_it_publishes_the_next_one_delays_no_cancel(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, loop: LeaseLoop, placement: Placement
) -> None:
    links.begin("one", placement, "one")
    links.run("one", "one", [])  # and Celery sends what follows
    ask_to_cancel(acme, placement)
    loop.turn()
    assert state_of(acme, placement) == ExecutionState.CANCELLED
    assert ticket_of(placement.execution_id) is None
    links.end("one")
    assert len(backend_of(boot).closed) == 1
    with pytest.raises(Ignore):
        run_link(links, placement, "two")
    assert steps_of(acme, placement.execution_id) == {"one": "succeeded", "two": "cancelled"}


def test_a_cancel_leaves_the_end_of_a_run_to_its_last_link(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, loop: LeaseLoop, placement: Placement
) -> None:
    run_link(links, placement, "one")
    links.begin("two", placement, "two")
    links.run("two", "two", [])  # its outcome is written
    ask_to_cancel(acme, placement)
    loop.turn()
    assert state_of(acme, placement) == ExecutionState.RUNNING
    links.end("two")
    assert state_of(acme, placement) == ExecutionState.SUCCEEDED
    assert len(backend_of(boot).closed) == 1


# --- what was lost
def test_a_claim_that_no_thread_works_on_is_handed_back(
    acme: TenantRef, boot: WorkerBoot, loop: LeaseLoop, placement: Placement
) -> None:
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")  # its answer was lost
    loop.turn()
    assert state_of(acme, placement) == ExecutionState.RUNNING
    loop.turn()
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    assert steps_of(acme, placement.execution_id)["one"] == "pending"


def test_a_link_that_comes_while_the_loop_looks_is_left_alone(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, loop: LeaseLoop, placement: Placement
) -> None:
    """The claim that the loop sees may be of a link that has begun since it looked for active ones."""

    def begin_before_the_look(execute: Callable[..., object], sql: str, *args: object) -> object:
        if Step._meta.db_table in sql and not begun:
            begun.append(sql)
            link.append(in_thread(run))
            assert claimed.wait(20)
        return execute(sql, *args)

    def run() -> None:
        links.begin("one", placement, "one")
        claimed.set()
        assert looked.wait(20)
        links.run("one", "one", [])
        links.end("one")

    begun: list[str] = []
    link: list[Future[None]] = []
    claimed, looked = threading.Event(), threading.Event()
    loop.turn()
    with connection.execute_wrapper(begin_before_the_look):
        loop.turn()
    assert begun
    looked.set()
    link[0].result(timeout=20)
    assert steps_of(acme, placement.execution_id) == {"one": "succeeded", "two": "running"}


def test_a_context_that_opens_during_the_renewal_is_not_lost(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is placed and claimed after the renewal's statement, and so not in its answer."""
    placed: list[Placement] = []

    def place_after_renewing(**told: Any) -> list[HeldPlacement] | None:
        held = renew(**told)
        placed.append(make_placed(acme, boot))
        links.begin("one", placed[0], "one")
        return held

    monkeypatch.setattr(lease, "renew", place_after_renewing)
    loop.turn()
    assert runtime_of(boot, placed[0]).alive
    links.run("one", "one", [])
    links.end("one")
    assert steps_of(acme, placed[0].execution_id)["one"] == "succeeded"


@pytest.mark.parametrize("active", [True, False])
def test_a_placement_that_others_have_ended_is_dropped_without_a_word(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    active: bool,
) -> None:
    run_link(links, placement, "one")
    if active:
        links.begin("two", placement, "two")
    runtime = runtime_of(boot, placement)
    with tenant_scope(acme):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_LOST, lost=True))
    before = everything_of(acme)
    loop.turn()
    assert not runtime.alive
    if active:
        with pytest.raises(Ignore):
            links.run("two", "two", [])
        links.end("two")
    assert everything_of(acme) == before
    assert boot.contexts.get(placement.key) is None
    assert len(backend_of(boot).closed) == 1


def test_a_draining_worker_hands_idle_runs_back(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, loop: LeaseLoop, placement: Placement
) -> None:
    run_link(links, placement, "one")
    boot.draining.set()
    loop.turn()
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    assert steps_of(acme, placement.execution_id) == {"one": "succeeded", "two": "pending"}
    assert boot.contexts.get(placement.key) is None


def test_one_bad_placement_costs_neither_the_others_nor_the_loop(
    acme: TenantRef,
    boot: WorkerBoot,
    loop: LeaseLoop,
    broker: "redis.Redis",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad, good = (make_placed(acme, boot) for _ in range(2))

    def send_unless_bad(placement: Placement, *, timeout: float) -> bool:
        if placement.execution_id == bad.execution_id:
            raise StopIteration
        return send(placement, timeout=timeout)

    monkeypatch.setattr(lease, "send", send_unless_bad)
    loop.turn()
    loop.turn()
    assert broker.llen(boot.lane) == 1
    assert state_of(acme, good) == ExecutionState.QUEUED


def test_a_cancel_between_the_claim_and_the_joining_of_a_link_waits_for_it(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    loop: LeaseLoop,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or its step would run in a context of its own after the run has ended."""
    run_link(links, placement, "one")
    context = boot.contexts.get(placement.key)
    assert context is not None
    assert context.take_claim()  # its own link claims the next step
    with tenant_scope(acme):
        Step.objects.filter(path="two").update(state="pending", attempt=0)
    claim = claim_step

    def claim_then_cancel(*args: Any, **options: Any) -> Any:
        claimed = claim(*args, **options)
        ask_to_cancel(acme, placement)
        in_thread(loop.turn).result(timeout=20)
        return claimed

    monkeypatch.setattr(claiming, "claim_step", claim_then_cancel)
    links.begin("two", placement, "two")
    assert boot.contexts.get(placement.key) is context
    links.run("two", "two", [])
    assert state_of(acme, placement) == ExecutionState.RUNNING
    links.end("two")
    assert (
        state_of(acme, placement) == ExecutionState.SUCCEEDED
    )  # it had ended before it heard of the cancel
    assert boot.contexts.get(placement.key) is None
