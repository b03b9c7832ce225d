"""The checkpoint: one statement that advances the run, or nothing at all when the placement is over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from executions.blueprints.plan import plan
from executions.models import Execution, MonthlyCost, Step
from executions.semantics.attempt_record import LogLine
from executions.semantics.decisions import StepDecision, after_step
from executions.semantics.reasons import EndReason
from executions.states import ExecutionState, StepState
from executions.transitions.checkpoint import Written, write_checkpoint
from executions.transitions.claim import claim_step
from executions.transitions.hand_back import hand_back
from executions.transitions.placement_end import PlacementEnd
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from isolane.results import Code, StepResult
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    costs_of,
    document,
    events_of,
    everything_of,
    logs_of,
    make_placed,
    record,
    run_of,
    step_of,
    steps_of,
)
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.statements import counted, lose_answers
from tests.integration.executions.threads import at_once, in_thread

Server = psycopg.Connection[tuple[object, ...]]
TOKEN = UUID(int=1)
ROUNDS = 10
PLAN = plan(document())

pytestmark = pytest.mark.usefixtures("neighbour")


@pytest.fixture
def claimed(acme: TenantRef, boot: WorkerBoot) -> Placement:
    """A run whose first step is claimed."""
    placement = make_placed(acme, boot)
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
    return placement


def done(path: str = "one") -> StepResult:
    return StepResult.succeeded(step=path, attempt=1, output={"n": 1})


def write(
    tenant: TenantRef, placement: Placement, result: StepResult, *, version: int = 0, **fields: Any
) -> Written | None:
    with tenant_scope(tenant):
        return write_checkpoint(
            placement,
            record(result, version=version, **fields),
            after_step(PLAN, result, seed=7),
        )


def test_it_advances_the_run(acme: TenantRef, claimed: Placement) -> None:
    assert write(acme, claimed, done())
    run = run_of(acme, claimed.execution_id)
    assert (run.next_step, run.version, run.outcome, run.state) == ("two", 1, "", "running")
    with tenant_scope(acme):
        step = Step.objects.get(path="one")
    assert (step.state, step.output, step.code) == (StepState.SUCCEEDED, {"n": 1}, "")
    assert step.finished_at is not None
    assert events_of(acme, claimed.execution_id)[3:] == ["step.succeeded"]


LINES = [
    LogLine(
        at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n),
        level="info",
        message=f"line {n}",
    )
    for n in range(3)
]
COSTS: dict[str, Any] = {"costs": {"tokens": Decimal(812)}, "run_costs": {"tokens": Decimal(812)}}
EVERYTHING: dict[str, Any] = {
    **COSTS, "lines": LINES, "variables": '{"v": 1}', "outputs": '{"o": 1}', "inputs": '{"i": 1}',
}  # fmt: skip


@pytest.mark.parametrize("fields", [{}, COSTS, EVERYTHING])
def test_it_is_one_statement(
    acme: TenantRef, claimed: Placement, superuser: Server, fields: dict[str, Any]
) -> None:
    result = done()
    with tenant_scope(acme):
        Execution.objects.exists()  # the scope is entered
        with counted(superuser) as statements:
            assert write_checkpoint(
                claimed, record(result, **fields), after_step(PLAN, result, seed=7)
            )
    assert statements.total() == 1, statements


def test_all_that_an_attempt_leaves_behind_is_written(acme: TenantRef, claimed: Placement) -> None:
    written = write(
        acme, claimed, done(), **EVERYTHING, sealed_output=b"sealed", sealed_variables=b"s"
    )
    assert written == Written(version=1, monthly={"tokens": Decimal(812)})
    run = run_of(acme, claimed.execution_id)
    assert (run.variables, run.outputs, run.costs) == ({"v": 1}, {"o": 1}, {"tokens": 812})
    assert bytes(run.sealed_variables or b"") == b"s"
    step = step_of(acme, claimed.execution_id, "one")
    assert (step.inputs, bytes(step.sealed_output or b"")) == ({"i": 1}, b"sealed")
    assert logs_of(acme, claimed.execution_id) == ["line 0", "line 1", "line 2"]
    assert costs_of(acme, claimed.execution_id) == [("one", 1, "tokens", 812)]


def test_costs_of_a_month_add_up_over_runs(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    for expected in (Decimal(812), Decimal(1624)):
        placement = make_placed(acme, boot)
        with tenant_scope(acme):
            claim_step(placement, "one", worker="w1@test")
        written = write(acme, placement, done(), **COSTS)
        assert written == Written(version=1, monthly={"tokens": expected})
    with tenant_scope(globex):
        assert not MonthlyCost.objects.exists()


def test_amounts_are_exact(acme: TenantRef, claimed: Placement) -> None:
    amount = Decimal("0.100001")
    write(acme, claimed, done(), costs={"eur": amount}, run_costs={"eur": amount})
    with tenant_scope(acme):
        assert MonthlyCost.objects.get().amount == amount


@pytest.mark.parametrize(
    ("retry_s", "state", "wakes"), [(5.0, "retrying", False), (90.0, "retrying", True)]
)
def test_a_retry_has_its_time_and_a_long_one_parks_the_run(
    acme: TenantRef, claimed: Placement, retry_s: float, state: str, wakes: bool
) -> None:
    decided = StepDecision(state=StepState.RETRYING, next_step="one", retry_s=retry_s)
    failure = StepResult.failed(step="one", attempt=1, code=Code.TRANSIENT_ERROR, message="")
    with tenant_scope(acme):
        assert write_checkpoint(claimed, replace(record(failure), run_code=""), decided)
    step, run = step_of(acme, claimed.execution_id, "one"), run_of(acme, claimed.execution_id)
    assert (step.state, step.finished_at, run.next_step) == (state, None, "one")
    assert step.retry_at is not None
    assert (run.wake_at == step.retry_at) is wakes
    assert (run.outcome, run.code) == ("", "")


@pytest.mark.parametrize("version", [1, 7])
def test_with_a_stale_version_nothing_is_written(
    acme: TenantRef, claimed: Placement, version: int
) -> None:
    before = everything_of(acme)
    assert write(acme, claimed, done(), version=version, **EVERYTHING) is None
    assert everything_of(acme) == before


def test_the_last_step_sets_the_outcome_and_leaves_the_run_running(
    acme: TenantRef, claimed: Placement
) -> None:
    write(acme, claimed, done())
    with tenant_scope(acme):
        claim_step(claimed, "two", worker="w1@test")
    assert write(acme, claimed, done("two"), version=1)
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
        hand_back(claimed, PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
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
    acme: TenantRef, claimed: Placement, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose_answers(monkeypatch, superuser, "checkpoint")
    assert write(acme, claimed, done(), **EVERYTHING)
    assert lost
    run = run_of(acme, claimed.execution_id)
    assert (run.version, run.costs) == (1, {"tokens": 812})
    assert events_of(acme, claimed.execution_id)[3:] == ["step.succeeded"]
    assert costs_of(acme, claimed.execution_id) == [("one", 1, "tokens", 812)]
    assert logs_of(acme, claimed.execution_id) == ["line 0", "line 1", "line 2"]
    with tenant_scope(acme):
        assert MonthlyCost.objects.get().amount == 812


def test_repeated_while_the_first_is_still_under_way_it_is_written_once(
    acme: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executions.transitions.checkpoint.uuid4", lambda: TOKEN)
    for _ in range(ROUNDS):
        placement = make_placed(acme, boot)
        with tenant_scope(acme):
            claim_step(placement, "one", worker="w1@test")
        both = at_once([partial(write, acme, placement, done(), **COSTS)] * 2)
        assert [written and written.version for written in both] == [1, 1]
        assert costs_of(acme, placement.execution_id) == [("one", 1, "tokens", 812)]
        assert run_of(acme, placement.execution_id).version == 1
        assert events_of(acme, placement.execution_id)[3:] == ["step.succeeded"]


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
