"""The checkpoint: one statement that advances the run, or nothing at all when the placement is over."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from executions.blueprint.plan import plan
from executions.decisions import after_step
from executions.models import Execution, Step
from executions.states import ExecutionState, StepState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.close import hand_back, set_outcome
from executions.transitions.fence import Placement
from executions.worker.machine import Machine
from isolane.results import Code, StepResult
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document, events_of, everything_of, make_placed, run_of, steps_of
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.threads import at_once, in_thread

Server = psycopg.Connection[tuple[object, ...]]
TOKEN = UUID(int=1)
ROUNDS = 10
PLAN = plan(document())

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def claimed(acme: TenantRef, machine: Machine) -> Placement:
    """A run whose first step is claimed."""
    placement = make_placed(acme, machine)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
    return placement


def done(path: str = "one") -> StepResult:
    return StepResult.succeeded(step=path, attempt=1, output={"n": 1})


def write(tenant: TenantRef, placement: Placement, result: StepResult) -> bool:
    with tenant_scope(tenant):
        return write_checkpoint(placement, result, after_step(PLAN, result))


def test_it_advances_the_run(acme: TenantRef, claimed: Placement) -> None:
    assert write(acme, claimed, done())
    run = run_of(acme, claimed.execution_id)
    assert (run.next_step, run.version, run.outcome, run.state) == ("two", 1, "", "running")
    with tenant_scope(acme):
        step = Step.objects.get(path="one")
    assert (step.state, step.output, step.code) == (StepState.SUCCEEDED, {"n": 1}, "")
    assert step.finished_at is not None
    assert events_of(acme, claimed.execution_id)[2:] == ["step.succeeded"]


def test_it_is_one_statement(acme: TenantRef, claimed: Placement) -> None:
    result = done()
    with tenant_scope(acme):
        Execution.objects.exists()  # the scope is entered
        with CaptureQueriesContext(connection) as queries:
            write_checkpoint(claimed, result, after_step(PLAN, result))
    assert len(queries) == 1


def test_the_last_step_sets_the_outcome_and_leaves_the_run_running(
    acme: TenantRef, claimed: Placement
) -> None:
    write(acme, claimed, done())
    with tenant_scope(acme):
        claim_step(claimed, "two", worker="w1@test")
    assert write(acme, claimed, done("two"))
    run = run_of(acme, claimed.execution_id)
    assert (run.next_step, run.version, run.outcome) == ("", 2, ExecutionState.SUCCEEDED)
    assert (run.state, run.finished_at) == (ExecutionState.RUNNING, None)


def test_a_failure_is_kept_with_step_and_run(acme: TenantRef, claimed: Placement) -> None:
    failure = StepResult.failed(
        step="one", attempt=1, code=Code.UNKNOWN_ERROR, message="broke", cause="KeyError"
    )
    assert write(acme, claimed, failure)
    run = run_of(acme, claimed.execution_id)
    assert (run.outcome, run.code, run.message) == ("failed", "UNKNOWN_ERROR", "broke")
    with tenant_scope(acme):
        step = Step.objects.get(path="one")
    assert (step.state, step.code, step.message, step.cause) == (
        "failed", "UNKNOWN_ERROR", "broke", "KeyError",
    )  # fmt: skip


def test_after_the_epoch_was_raised_nothing_is_written(acme: TenantRef, claimed: Placement) -> None:
    with tenant_scope(acme):
        hand_back(claimed, reason="test", lost=True)
    before = everything_of(acme)
    assert not write(acme, claimed, done())
    assert everything_of(acme) == before


@pytest.mark.parametrize(
    "result",
    [
        done("two"),  # not claimed
        StepResult.succeeded(step="one", attempt=2, output=None),  # another attempt
    ],
)
def test_only_what_was_claimed_is_written(
    acme: TenantRef, claimed: Placement, result: StepResult
) -> None:
    before = everything_of(acme)
    assert not write(acme, claimed, result)
    assert everything_of(acme) == before


def test_repeated_after_a_lost_answer_it_finds_its_own_token(
    acme: TenantRef, claimed: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executions.transitions.checkpoint.uuid4", lambda: TOKEN)
    assert write(acme, claimed, done())
    before = everything_of(acme)
    assert write(acme, claimed, done())
    assert everything_of(acme) == before


def test_somebody_elses_token_is_no_proof(acme: TenantRef, claimed: Placement) -> None:
    assert write(acme, claimed, done())
    assert not write(acme, claimed, done())


def test_a_connection_lost_after_the_commit_does_no_harm(
    acme: TenantRef, claimed: Placement, superuser: Server
) -> None:
    def lose_the_answer(execute: Callable[..., object], sql: str, *args: object) -> object:
        answer = execute(sql, *args)
        if not lost and "token = %(token)s" in sql:
            lost.append(sql)
            pid = connection.connection.info.backend_pid
            superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            execute("SELECT 1", None, *args[1:])  # raises what a lost connection raises
        return answer

    lost: list[str] = []
    with tenant_scope(acme), connection.execute_wrapper(lose_the_answer):
        assert write_checkpoint(claimed, done(), after_step(PLAN, done()))
    assert lost
    assert run_of(acme, claimed.execution_id).version == 1
    assert events_of(acme, claimed.execution_id)[2:] == ["step.succeeded"]


def test_repeated_while_the_first_is_still_under_way_it_is_written_once(
    acme: TenantRef, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executions.transitions.checkpoint.uuid4", lambda: TOKEN)
    for _ in range(ROUNDS):
        placement = make_placed(acme, machine)
        with tenant_scope(acme):
            claim_step(placement, "one", worker="w1@test")
        assert at_once([partial(write, acme, placement, done())] * 2) == [True, True]
        assert run_of(acme, placement.execution_id).version == 1
        assert events_of(acme, placement.execution_id)[2:] == ["step.succeeded"]


def test_not_while_the_runs_outcome_is_being_set(
    acme: TenantRef, claimed: Placement, superuser: Server
) -> None:
    with tenant_scope(acme), transaction.atomic():
        assert set_outcome(claimed, ExecutionState.CANCELLED, code="", message="")
        other = in_thread(partial(write, acme, claimed, done()))
        wait_until_blocked(superuser)
    assert not other.result(timeout=20)
    assert run_of(acme, claimed.execution_id).outcome == ExecutionState.CANCELLED


def test_another_tenant_cannot_write_it(
    acme: TenantRef, globex: TenantRef, claimed: Placement
) -> None:
    assert not write(globex, claimed, done())
    assert steps_of(acme, claimed.execution_id)["one"] == StepState.RUNNING
