"""Claiming a step: once, under the valid placement, and not when the run is to stop."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from django.db import transaction
from django.db.models.functions import Now

from executions.models import Execution, Step
from executions.placement.models import Ticket
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, StepState
from executions.transitions.cancel import cancel
from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, make_placed, place, run_of, steps_of
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.statements import counted, lose_answers
from tests.integration.executions.threads import at_once, in_thread

Server = psycopg.Connection[tuple[object, ...]]
ROUNDS = 25
BEGUN = ["execution.queued", "placement.began"]

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return make_placed(acme, boot)


def claim(tenant: TenantRef, placement: Placement, path: str = "one") -> Claim | Refusal:
    with tenant_scope(tenant):
        return claim_step(placement, path, worker="w1@test")


def claimed(tenant: TenantRef, placement: Placement, path: str = "one") -> Claim:
    found = claim(tenant, placement, path)
    assert isinstance(found, Claim)
    return found


def test_the_first_claim_starts_step_and_run(acme: TenantRef, placement: Placement) -> None:
    found = claimed(acme, placement)
    assert (found.attempt, found.version, found.wait_s, found.recovering) == (1, 0, 0, False)
    assert 1700 < found.left_s <= 1800
    run = run_of(acme, placement.execution_id)
    assert (run.state, run.worker) == (ExecutionState.RUNNING, "w1@test")
    assert run.started_at is not None
    assert steps_of(acme, placement.execution_id) == {"one": "running", "two": "pending"}
    assert events_of(acme, placement.execution_id) == [*BEGUN, "step.started"]


def test_it_is_one_statement(acme: TenantRef, placement: Placement, superuser: Server) -> None:
    with tenant_scope(acme):
        Execution.objects.exists()  # the scope is entered
        with counted(superuser) as statements:
            assert isinstance(claim_step(placement, "one", worker="w1@test"), Claim)
    assert statements.total() == 1, statements


def test_a_claim_whose_answer_was_lost_is_not_made_twice(
    acme: TenantRef, placement: Placement, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written, and knows itself by its token: what may run at most once need not end as if it had begun."""
    lost = lose_answers(monkeypatch, superuser, "claim")
    found = claim(acme, placement)
    assert isinstance(found, Claim)
    assert (found.attempt, found.version) == (1, 0)
    assert 0 < found.left_s <= 1800
    assert lost
    assert claim(acme, placement) is Refusal.DUPLICATE
    assert events_of(acme, placement.execution_id) == [*BEGUN, "step.started"]


def test_the_second_claim_is_a_duplicate(acme: TenantRef, placement: Placement) -> None:
    claim(acme, placement)
    assert claim(acme, placement) is Refusal.DUPLICATE
    assert events_of(acme, placement.execution_id) == [*BEGUN, "step.started"]


def test_a_step_that_ended_under_this_epoch_is_a_duplicate(
    acme: TenantRef, placement: Placement
) -> None:
    """Its own link goes on with the chain; a second one must not."""
    claim(acme, placement)
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=StepState.SUCCEEDED)
    assert claim(acme, placement) is Refusal.DUPLICATE


@pytest.mark.parametrize("other", [{"epoch": 2}, {"epoch": 0}, {"boot": uuid4()}])
def test_another_placement_is_stale(
    acme: TenantRef, placement: Placement, other: dict[str, object]
) -> None:
    assert claim(acme, replace(placement, **other)) is Refusal.STALE  # type: ignore[arg-type]
    assert steps_of(acme, placement.execution_id)["one"] == StepState.PENDING


def test_a_run_without_ticket_is_stale(acme: TenantRef, placement: Placement) -> None:
    with tenant_scope(acme):
        Ticket.objects.all().delete()
    assert claim(acme, placement) is Refusal.STALE


def test_another_tenants_run_cannot_be_claimed(
    acme: TenantRef, globex: TenantRef, placement: Placement
) -> None:
    assert claim(globex, placement) is Refusal.STALE
    assert steps_of(acme, placement.execution_id)["one"] == StepState.PENDING


def test_not_after_cancelling_was_asked_for(acme: TenantRef, placement: Placement) -> None:
    with tenant_scope(acme):
        cancel(placement.execution_id, message="")
    assert claim(acme, placement) is Refusal.DUPLICATE
    assert steps_of(acme, placement.execution_id)["one"] == StepState.PENDING


def test_a_step_that_ended_under_an_older_epoch_is_done(
    acme: TenantRef, boot: WorkerBoot, placement: Placement
) -> None:
    claim(acme, placement)
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=StepState.SUCCEEDED)
        Execution.objects.update(next_step="two")
        hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    assert claim(acme, again) is Refusal.DONE
    assert claimed(acme, again, "two").attempt == 1
    assert run_of(acme, placement.execution_id).state == ExecutionState.RUNNING


def test_a_lost_claim_is_claimed_again_under_the_next_epoch_and_uses_no_attempt(
    acme: TenantRef, boot: WorkerBoot, placement: Placement
) -> None:
    claim(acme, placement)
    with tenant_scope(acme):
        hand_back(placement, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    again = place(acme, placement.execution_id, boot)
    assert claim(acme, placement) is Refusal.STALE
    assert claimed(acme, again).attempt == 1


def test_not_while_the_runs_outcome_is_being_set(
    acme: TenantRef, placement: Placement, superuser: Server
) -> None:
    with tenant_scope(acme), transaction.atomic():
        assert set_outcome(placement, ExecutionState.CANCELLED, code="", message="")
        other = in_thread(partial(claim, acme, placement))
        wait_until_blocked(superuser)
    assert other.result(timeout=20) is Refusal.DUPLICATE
    assert steps_of(acme, placement.execution_id)["one"] == StepState.PENDING


def test_of_two_at_once_exactly_one_claims(acme: TenantRef, boot: WorkerBoot) -> None:
    for _ in range(ROUNDS):
        placement = make_placed(acme, boot)
        both = at_once([partial(claim, acme, placement)] * 2)
        assert Refusal.DUPLICATE in both
        assert [found.attempt for found in both if isinstance(found, Claim)] == [1]
        assert events_of(acme, placement.execution_id) == [*BEGUN, "step.started"]


# --- what is claimed, and when
def test_only_the_next_step_is_claimed(acme: TenantRef, placement: Placement) -> None:
    assert claim(acme, placement, "two") is Refusal.DUPLICATE
    assert steps_of(acme, placement.execution_id) == {"one": "pending", "two": "pending"}
    assert run_of(acme, placement.execution_id).state == ExecutionState.QUEUED


def test_not_while_the_run_waits_for_a_time(acme: TenantRef, placement: Placement) -> None:
    with tenant_scope(acme):
        Execution.objects.update(wake_at=Now() + timedelta(hours=1))
    assert claim(acme, placement) is Refusal.DUPLICATE


@pytest.mark.parametrize("state", [StepState.RETRYING, StepState.PENDING])
def test_a_step_to_be_tried_again_says_how_long_to_wait_and_what_failed(
    acme: TenantRef, placement: Placement, state: StepState
) -> None:
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(state=StepState.RUNNING)
        Step.objects.filter(path="one").update(
            state=state,
            attempt=2,
            retry_at=Now() + timedelta(seconds=30),
            recovering=True,
            code="UNKNOWN_ERROR",
            message="broke",
        )
    found = claimed(acme, placement)
    assert (found.attempt, found.recovering) == (3, True)
    assert (found.code, found.message) == ("UNKNOWN_ERROR", "broke")
    assert 25 < found.wait_s <= 30


def test_a_time_that_is_past_is_no_wait(acme: TenantRef, placement: Placement) -> None:
    with tenant_scope(acme):
        Step.objects.filter(path="one").update(retry_at=Now() - timedelta(seconds=30))
    assert claimed(acme, placement).wait_s == 0


def test_it_says_how_long_the_run_may_still_hold_its_slot(
    acme: TenantRef, placement: Placement
) -> None:
    with tenant_scope(acme):
        Ticket.objects.update(deadline=Now() - timedelta(seconds=5))
    assert claimed(acme, placement).left_s < 0
