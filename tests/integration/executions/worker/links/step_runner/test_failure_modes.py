"""A run after the failure of a step: abort, continue, retry and recover, on real rows."""

from typing import Any

import pytest

from executions.models import ExecutionEvent
from executions.states import ExecutionState
from executions.submission.replay import replay
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from isolane.results import Code
from resources.runtimes.stub import fails, succeeds
from tenants.scope import TenantRef, tenant_scope
from tests.factories import (
    costs_of,
    events_of,
    place,
    run_of,
    start,
    step_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.worker.driving import (
    costing,
    drive,
    echo,
    epochs_closed,
    in_turn,
    run_link,
    runs_of,
    script,
    setting,
)

pytestmark = pytest.mark.usefixtures("neighbour", "broker")

TRANSIENT = fails(Code.TRANSIENT_ERROR, "try again")
RESCUE = {"uses": "rescue", "with": {"why": "${error.code}", "said": "${error.message}"}}


def flaky(mode: str, **step: Any) -> dict[str, Any]:
    return {"uses": "flaky", "on_failure": mode, **step}


# --- retry
def test_a_retry_runs_again_in_the_same_link_until_it_succeeds(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    bad, good = costing(2, TRANSIENT), costing(3, succeeds({"ok": True}))
    script(boot, flaky=in_turn(bad, bad, good))
    placement = start(acme, boot, flaky("retry"), {})
    assert run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.attempt, step.output, step.code) == ("succeeded", 3, {"ok": True}, "")
    assert step.retry_at is None
    assert events_of(acme, placement.execution_id)[2:] == [
        *("step.started", "step.retrying") * 2,
        "step.started",
        "step.succeeded",
        "step.started",
    ]
    first, second, third = runs_of(boot, placement)
    assert [run.attempt for run in (first, second, third)] == [1, 2, 3]
    assert first.seed == second.seed == third.seed
    assert first.idempotency_key == third.idempotency_key
    assert costs_of(acme, placement.execution_id) == [
        ("s1", 1, "tokens", 2),
        ("s1", 2, "tokens", 2),
        ("s1", 3, "tokens", 3),
    ]
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert run_of(acme, placement.execution_id).costs == {"tokens": 7}
    assert epochs_closed(boot, placement) == [1]


def test_the_event_of_a_retry_says_when_it_is_tried_again(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=in_turn(TRANSIENT, succeeds(1)))
    placement = start(acme, boot, flaky("retry"))
    drive(acme, links, placement)
    with tenant_scope(acme):
        event = ExecutionEvent.objects.get(kind="step.retrying")
    assert (event.step, event.data["code"], event.data["attempt"]) == ("s1", "TRANSIENT_ERROR", 1)
    assert event.data["retry_s"] == 0.001


@pytest.mark.parametrize(
    ("then", "ended", "steps"),
    [
        ("abort", "failed", {"s1": "failed", "s2": "skipped"}),
        ("continue", "succeeded", {"s1": "failed", "s2": "succeeded"}),
        ("recover", "succeeded", {"s1": "succeeded", "s2": "succeeded"}),
    ],
)
def test_after_the_last_attempt_it_acts_as_its_then(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    then: str,
    ended: str,
    steps: dict[str, str],
) -> None:
    script(boot, flaky=TRANSIENT)
    step = flaky("retry", retry={"attempts": 2, "then": then})
    if then == "recover":
        step["recover"] = RESCUE
    placement = start(acme, boot, step, {})
    run = drive(acme, links, placement)
    assert run.state == ended
    assert run.code == ("TRANSIENT_ERROR" if then == "abort" else "")
    assert steps_of(acme, placement.execution_id) == steps
    uses = [asked.uses for asked in runs_of(boot, placement)]
    assert uses[:2] == ["flaky", "flaky"]
    assert ("rescue" in uses) is (then == "recover")
    assert ticket_of(placement.execution_id) is None


def test_a_code_that_is_never_retried_acts_as_then_at_once(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.POLICY_VIOLATION))
    placement = start(acme, boot, flaky("retry", retry={"then": "continue"}), {})
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert [run.uses for run in runs_of(boot, placement)] == ["flaky", "work"]
    assert step_of(acme, placement.execution_id, "s1").attempt == 1


def test_a_failed_link_raises_the_code_of_the_last_attempt(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=in_turn(TRANSIENT, fails(Code.RATE_LIMIT_ERROR)))
    placement = start(acme, boot, flaky("retry", retry={"attempts": 2}))
    with pytest.raises(StepFailed, match=r"\ARATE_LIMIT_ERROR\Z"):
        run_link(links, placement, "s1")
    assert run_of(acme, placement.execution_id).code == "RATE_LIMIT_ERROR"


# --- continue
@pytest.mark.parametrize("code", [Code.UNKNOWN_ERROR, Code.TIMEOUT])
def test_a_failure_that_is_continued_is_recorded_and_the_chain_goes_on(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, code: Code
) -> None:
    script(boot, flaky=fails(code, "broke"))
    placement = start(acme, boot, flaky("continue"), {})
    assert run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.message, step.output) == ("failed", code, "broke", None)
    run = drive(acme, links, placement)
    assert (run.state, run.code, run.message) == ("succeeded", "", "")


def test_a_last_step_that_is_continued_ends_the_run_succeeded(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR))
    placement = start(acme, boot, {}, flaky("continue"), outputs={"n": "${steps.s1.n}"})
    run = drive(acme, links, placement)
    assert (run.state, run.outputs) == ("succeeded", {"n": 1})
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded", "s2": "failed"}


# --- recover
def test_a_recovery_takes_the_steps_place_and_the_failure_stays_known(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR, "broke"), rescue=echo)
    later = {"with": {"seen": "${steps.s1.said}"}}
    placement = start(acme, boot, flaky("recover", recover=RESCUE), later)
    assert run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.code, step.cause) == ("succeeded", "UNKNOWN_ERROR", "recovered")
    assert step.output == {"why": "UNKNOWN_ERROR", "said": "broke"}
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    asked = runs_of(boot, placement)
    assert [(run.uses, run.attempt) for run in asked] == [("flaky", 1), ("rescue", 2), ("work", 1)]
    assert asked[1].idempotency_key == f"{asked[0].idempotency_key}:recover"
    assert asked[2].parameters == {"seen": "broke"}


def test_a_recovery_that_fails_too_fails_the_run_with_the_original_code(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=fails(Code.UNKNOWN_ERROR, "broke"), rescue=TRANSIENT)
    placement = start(acme, boot, flaky("recover", recover=RESCUE), {})
    run = drive(acme, links, placement)
    assert (run.state, run.code, run.message) == ("failed", "UNKNOWN_ERROR", "broke")
    step = step_of(acme, placement.execution_id, "s1")
    assert (step.state, step.cause) == ("failed", "recovery: TRANSIENT_ERROR")
    assert len(runs_of(boot, placement)) == 2


def test_costs_of_step_and_recovery_are_those_of_two_attempts(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=costing(1, TRANSIENT), rescue=costing(2, succeeds(1)))
    placement = start(acme, boot, flaky("recover", recover=RESCUE))
    drive(acme, links, placement)
    assert costs_of(acme, placement.execution_id) == [
        ("s1", 1, "tokens", 1),
        ("s1", 2, "tokens", 2),
    ]


# --- conditions, variables and outputs
def test_a_step_is_skipped_and_the_outputs_tell(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=setting({"go": False}, total=41))
    placement = start(
        acme,
        boot,
        {"uses": "flaky"},
        {"when": "${steps.s1.go}"},
        {"with": {"total": "${vars.total}"}},
        outputs={"total": "${vars.total}", "skipped": "${steps.s2}"},
    )
    run = drive(acme, links, placement)
    assert (run.state, run.outputs) == ("succeeded", {"total": 41, "skipped": None})
    assert run.variables == {"total": 41}
    assert steps_of(acme, placement.execution_id)["s2"] == "skipped"
    assert [asked.step for asked in runs_of(boot, placement)] == ["s1", "s3"]
    last = runs_of(boot, placement)[-1]
    assert (last.parameters, last.variables) == ({"total": 41}, {"total": 41})


def test_outputs_that_cannot_be_resolved_fail_the_run(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner
) -> None:
    script(boot, flaky=succeeds({"list": ["a"]}))
    placement = start(acme, boot, {"uses": "flaky"}, outputs={"x": "${steps.s1.list[?@ > `1`]}"})
    run = drive(acme, links, placement)
    assert (run.state, run.code, run.outputs) == ("failed", "POLICY_VIOLATION", None)
    assert run.message.startswith("outputs.x: ")
    assert steps_of(acme, placement.execution_id) == {"s1": "succeeded"}


# --- replay
@pytest.mark.parametrize(("again", "ended"), [({"n": 1}, "succeeded"), ({"n": 2}, "failed")])
def test_a_replay_has_the_same_seeds_and_a_deterministic_step_must_come_to_the_same(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, again: dict[str, int], ended: str
) -> None:
    step = {"uses": "pure", "guarantee": "deterministic", "with": {"x": "${inputs.x}"}}
    original = start(acme, boot, step, {}, given={"x": 5})
    assert drive(acme, links, original).state == ExecutionState.SUCCEEDED
    script(boot, pure=succeeds(again))
    copy = replay(acme, original.execution_id, requested_by="ann").execution
    placement = place(acme, copy.id, boot)
    run = drive(acme, links, placement)
    assert (run.state, run.replay_of) == (ended, original.execution_id)
    assert run.code == ("" if ended == "succeeded" else "POLICY_VIOLATION")
    first, second = runs_of(boot, original)[0], runs_of(boot, placement)[0]
    assert (first.seed, first.parameters) == (second.seed, second.parameters)
