"""A run's status, read from its rows, of one tenant beside another."""

import re
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from executions.blueprints.plan import plan
from executions.explain.query import status_of
from executions.explain.status import describe_status
from executions.selectors.executions import find_execution, snapshot
from executions.selectors.history import events
from executions.semantics.decisions import after_step
from executions.submission.cancel import request_cancel
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.close import close_execution
from executions.transitions.explain_waiting import explain_waiting
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    WORK,
    document,
    make_boot,
    make_placed,
    make_run,
    record,
    set_quota,
    start,
)
from tests.integration.executions.worker.driving import asking, drive, script, setting

pytestmark = pytest.mark.usefixtures("neighbour")
FLAKY = {"uses": "flaky"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_TOOK = re.compile(r" after [\d.]+ (ms|s)")

LEVEL = " Its level of isolation is shared: the tenant requires it."


@pytest.fixture
def boot(database: None) -> WorkerBoot:
    """A worker with a node that each test scripts."""
    return make_boot(script={WORK: succeeds({"n": 1}), "flaky": succeeds(None)})


def now(tenant: TenantRef, run: UUID) -> str:
    """The sentence, without its times, and without the level, which each ends with."""
    with tenant_scope(tenant), snapshot():
        told = describe_status(status_of(find_execution(f"exec_{run}")))
    assert told.endswith(LEVEL)
    told = told.removesuffix(LEVEL)
    return _TOOK.sub(" after X", _MOMENT.sub("T", told))


def fail(tenant: TenantRef, placement: Placement) -> None:
    """Claim the first step and fail it, and the run with it."""
    result = StepResult.failed(step="one", attempt=1, code=Code.UNKNOWN_ERROR, message="KeyError")
    with tenant_scope(tenant):
        claim_step(placement, "one", worker="w1@test")
        decided = after_step(plan(document()), result, seed=7)
        assert write_checkpoint(placement, record(result), decided)


# --- without a slot
def test_a_queued_run_waits_for_a_slot(acme: TenantRef, boot: WorkerBoot) -> None:
    run = make_run(acme)
    waits = "The run has waited for a slot since T"
    assert now(acme, run) == f"{waits}; it gets the next free one on a suitable worker."
    make_placed(acme, boot)
    set_quota(acme, 1)
    assert now(acme, run) == f"{waits}: its tenant's runs hold all of their slots (1)."
    with tenant_scope(acme):
        explain_waiting(run, "Waits for a worker that offers its nodes.")
    assert now(acme, run) == f"{waits}. Waits for a worker that offers its nodes."


def test_slots_of_other_tenants_are_not_counted(acme: TenantRef) -> None:
    set_quota(acme, 1)
    assert "all of their slots" not in now(acme, make_run(acme))  # the neighbour holds one


def test_a_run_that_sleeps_is_told_with_what_follows(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=setting(None, pause_s=3600))
    run = drive(acme, links, start(acme, boot, FLAKY, {}))
    assert (
        now(acme, run.id) == "The run waits, without a slot, until T and then goes on with step s2."
    )
    run = drive(acme, links, start(acme, boot, FLAKY))
    assert now(acme, run.id) == "The run waits, without a slot, until T and then ends."


def test_a_run_in_a_long_backoff_is_told_with_its_failure(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.results.RETRY_BASE_MS", {Code.TRANSIENT_ERROR: 61_000})
    script(boot, flaky=fails(Code.TRANSIENT_ERROR, "away"))
    run = drive(acme, links, start(acme, boot, {**FLAKY, "on_failure": "retry"}))
    assert now(acme, run.id) == (
        "The run waits, without a slot, until T to retry step s1, which failed with TRANSIENT_ERROR."
    )


def test_a_run_that_asks_is_told_with_its_question(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=asking("Pay?"))
    run = drive(acme, links, start(acme, boot, FLAKY, {}))
    assert now(acme, run.id) == (
        "The run waits, without a slot, until T for a person's answer to step s1: Pay?"
    )


# --- with a slot
def test_a_placed_run_is_told_step_by_step(acme: TenantRef, boot: WorkerBoot) -> None:
    placement = make_placed(acme, boot)
    run = placement.execution_id
    assert now(acme, run) == "The run has a slot; step one is about to begin."
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
    assert now(acme, run) == "The run has been at step one on w1@test since T (attempt 1)."
    with tenant_scope(acme):
        request_cancel(run, actor="ann")
    assert now(acme, run) == (
        "The run is being cancelled; step one on w1@test has been asked to stop."
    )


# --- over
def test_a_failed_run_is_told_with_the_step_that_ended_it(
    acme: TenantRef, boot: WorkerBoot
) -> None:
    placement = make_placed(acme, boot)
    fail(acme, placement)
    how = "with UNKNOWN_ERROR at step one"
    assert now(acme, placement.execution_id) == (
        f"The run is about to fail {how}: KeyError. Its context is being closed."
    )
    with tenant_scope(acme):
        close_execution(placement)
    assert now(acme, placement.execution_id) == f"The run failed {how} after X: KeyError."


def test_a_failure_that_the_run_went_on_after_is_not_its_end(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR, "KeyError"))
    goes_on = {**FLAKY, "on_failure": "continue"}
    run = drive(acme, links, start(acme, boot, goes_on, FLAKY, {}))
    told = "The run failed with UNKNOWN_ERROR at step s2 after X: KeyError."
    assert now(acme, run.id) == told
    run = drive(acme, links, start(acme, boot, goes_on, {}))
    assert now(acme, run.id) == "The run succeeded after X."


def test_a_recovery_that_fails_ends_at_its_step(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR, "KeyError"))
    recovered = {**FLAKY, "on_failure": "recover", "recover": FLAKY}
    run = drive(acme, links, start(acme, boot, recovered, {}))
    told = "The run failed with UNKNOWN_ERROR at step s1 after X: KeyError."
    assert now(acme, run.id) == told


def test_a_cancelled_run_is_told_with_who_asked(acme: TenantRef) -> None:
    run = make_run(acme)
    with tenant_scope(acme):
        request_cancel(run, actor="ann")
    assert now(acme, run) == "The run was cancelled: Cancelled by ann."


# --- the cost
@pytest.mark.parametrize("steps", [1, 30])
def test_the_number_of_statements_does_not_grow_with_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, steps: int
) -> None:
    run = drive(acme, links, start(acme, boot, *({} for _ in range(steps))))
    with tenant_scope(acme), CaptureQueriesContext(connection) as asked, snapshot():
        found = find_execution(f"exec_{run.id}")
        assert len(events(found)) >= 2 * steps
        status_of(found)
    texts = [query["sql"] for query in asked if query["sql"].startswith('SELECT "')]
    assert len(texts) == 4  # run, events, ticket, step
