"""The express lane: one link runs all steps, with the same claims, checkpoints, context and events."""

import pytest
import redis
from celery.exceptions import Ignore

from executions.placement.dispatch import admit_and_send
from executions.states import ExecutionState, TicketState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.loops.lease import LeaseLoop
from isolane.results import Code
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, make_run, place, run_of, start, steps_of, ticket_of
from tests.integration.executions.worker.driving import (
    doing,
    drive,
    epochs_closed,
    in_turn,
    let_its_time_come,
    run_link,
    runs_of,
    script,
    setting,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

FLAKY = {"uses": "flaky"}


def test_one_link_runs_all_steps_as_a_chain_would(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    later = {"with": {"n": "${steps.s1.n}"}}
    chained = start(acme, boot, {}, later, {})
    drive(acme, links, chained)
    placement = start(acme, boot, {}, later, {}, express=True)
    assert not run_link(links, placement, "s1")
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.version, run.express) == ("succeeded", 3, True)
    assert [asked.step for asked in runs_of(boot, placement)] == ["s1", "s2", "s3"]
    assert runs_of(boot, placement)[1].parameters == {"n": 1}
    assert events_of(acme, placement.execution_id) == events_of(acme, chained.execution_id)
    assert epochs_closed(boot, placement) == [1]
    assert ticket_of(placement.execution_id) is None


def test_one_message_is_sent_for_the_whole_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, broker: "redis.Redis"
) -> None:
    first = start(acme, boot, {}, {}, express=True)
    run_link(links, first, "s1")
    assert broker.llen(boot.lane) == 0  # nothing to extend
    make_run(acme, "one", "two")
    admit_and_send()
    assert broker.llen(boot.lane) == 1


def test_a_failure_in_the_middle_ends_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR))
    placement = start(acme, boot, {}, FLAKY, {}, express=True)
    with pytest.raises(StepFailed, match="UNKNOWN_ERROR"):
        run_link(links, placement, "s1")
    assert steps_of(acme, placement.execution_id) == {
        "s1": "succeeded", "s2": "failed", "s3": "skipped",
    }  # fmt: skip


def test_retries_skips_and_continued_failures_stay_in_the_link(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=in_turn(fails(Code.TRANSIENT_ERROR), succeeds(1), fails(Code.DISK_FULL)))
    placement = start(
        acme,
        boot,
        {**FLAKY, "on_failure": "retry"},
        {"when": "${inputs.none}"},
        {**FLAKY, "on_failure": "continue"},
        {},
        express=True,
    )
    run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    assert list(steps_of(acme, placement.execution_id).values()) == [
        "succeeded", "skipped", "failed", "succeeded",
    ]  # fmt: skip


def test_a_cancel_between_its_steps_ends_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    placement = start(acme, boot, FLAKY, {}, express=True)

    def ask() -> None:
        with tenant_scope(acme):
            request_cancel(placement.execution_id, actor="ann")

    script(boot, flaky=doing(ask, succeeds(1)))
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    loop = LeaseLoop(boot)
    loop.turn()
    loop.turn()
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.code) == ("cancelled", "CANCELLED")
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "cancelled"}
    assert [asked.step for asked in runs_of(boot, placement)] == ["s1"]
    assert epochs_closed(boot, placement) == [1]


def test_a_drain_between_its_steps_hands_the_rest_back(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=doing(boot.draining.set, succeeds(1)))
    placement = start(acme, boot, FLAKY, {}, {}, express=True)
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    LeaseLoop(boot).turn()
    ticket = ticket_of(placement.execution_id)
    assert ticket is not None
    assert (ticket.state, ticket.epoch) == (TicketState.WAITING, 2)
    assert steps_of(acme, placement.execution_id) == {
        "s1": "succeeded", "s2": "pending", "s3": "pending",
    }  # fmt: skip
    boot.draining.clear()
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "s2")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    assert [asked.step for asked in runs_of(boot, placement)] == ["s1", "s2", "s3"]


def test_an_old_lease_between_its_steps_claims_nothing_more(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    def grow_old() -> None:
        boot.renewed_at -= boot.clocks.self_fence

    script(boot, flaky=doing(grow_old, succeeds(1)))
    placement = start(acme, boot, FLAKY, {}, express=True)
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    assert steps_of(acme, placement.execution_id)["s2"] == "pending"


def test_a_pause_parks_it_and_one_link_runs_the_rest(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=setting(None, pause_s=60))
    placement = start(acme, boot, FLAKY, {}, {}, express=True)
    assert not run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).state == ExecutionState.WAITING
    let_its_time_come(acme, placement)
    again = place(acme, placement.execution_id, boot)
    run_link(links, again, "s2")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
