"""The seed determines the plan of a chaos trial."""

import pytest

from executions.blueprints.plan import FailureMode, Guarantee, plan
from executions.blueprints.schema.document import check
from executions.blueprints.validation.rules import check_document
from trials.chaos.plan import (
    ALWAYS,
    GUARANTEES,
    PERIOD_SECONDS,
    SKEW_SECONDS,
    SLEEP,
    STEPS,
    TENANTS,
    WORKER_STOPPED,
    Fault,
    FaultKind,
    documents,
    run,
    schedule,
    skew,
)

NAMES = ["a", "b", "c"]


def test_the_same_seed_gives_the_same_plan() -> None:
    assert documents(3) == documents(3) != documents(4)
    assert [run(3, n, NAMES) for n in range(50)] == [run(3, n, NAMES) for n in range(50)]
    assert [run(3, n, NAMES) for n in range(50)] != [run(4, n, NAMES) for n in range(50)]
    assert schedule(3, 60, 3) == schedule(3, 60, 3) != schedule(4, 60, 3)
    assert skew(3, 1) == skew(3, 1) != skew(3, 2)


# --- blueprints
def test_blueprints_can_be_published_and_have_twenty_steps() -> None:
    for document in documents(5):
        check(document)
        check_document(document, {})
        assert len(document["steps"]) == STEPS


def test_all_guarantees_and_failure_modes_are_there() -> None:
    plans = [plan(document) for document in documents(5)]
    steps = [step for one in plans for step in one.steps]
    assert {step.guarantee for step in steps} == set(Guarantee) == set(GUARANTEES)
    assert {step.on_failure for step in steps} == set(FailureMode)
    assert {step.then for step in steps if step.on_failure is FailureMode.RETRY} == {
        FailureMode.ABORT,
        FailureMode.CONTINUE,
        FailureMode.RECOVER,
    }
    assert {one.express for one in plans} == {True, False}
    assert any(step.uses == SLEEP for step in steps)


def test_a_step_that_fails_mostly_has_another_attempt_or_lets_the_run_continue() -> None:
    steps = [step for document in documents(5, 400) for step in plan(document).steps]
    failing = {step.parameters.get("fails", 0) for step in steps}
    assert failing == {0, 1, ALWAYS}
    once = [step for step in steps if step.parameters.get("fails") == 1]
    assert all(step.attempts > 1 for step in once)
    ended = [
        step
        for step in steps
        if step.parameters.get("fails") == ALWAYS and step.on_failure is FailureMode.ABORT
    ]
    assert 0 < len(ended) < len(steps) / 50


def test_a_step_that_may_be_retried_leaves_no_unique_mark() -> None:
    steps = [step for document in documents(5) for step in plan(document).steps]
    marked = [step for step in steps if "once" in step.parameters]
    assert {step.guarantee for step in marked} == {Guarantee.AT_MOST_ONCE, Guarantee.BEST_EFFORT}
    for step in marked:
        assert step.parameters["once"] is (step.on_failure is not FailureMode.RETRY)


# --- runs
def test_tenants_take_turns_and_some_runs_are_cancelled() -> None:
    planned = [run(5, index, NAMES) for index in range(200)]
    assert [one.tenant for one in planned[:4]] == [*TENANTS, *TENANTS]
    assert 5 < sum(one.cancel_after is not None for one in planned) < 40
    assert len({one.seed for one in planned}) == len(planned)
    assert {one.blueprint for one in planned} == set(NAMES)


# --- faults
@pytest.mark.parametrize("seed", range(20))
def test_there_is_a_fault_every_two_seconds_and_one_of_a_server_in_each_quarter(seed: int) -> None:
    found = schedule(seed, 60, 3)
    assert found == sorted(found, key=lambda fault: fault.at)
    regular = [one.at for one in found if one.kind not in _SERVERS]
    assert regular == [PERIOD_SECONDS * number for number in range(1, 30)]
    assert sorted(one.kind for one in found if one.kind in _SERVERS) == sorted(
        [FaultKind.FLUSH, FaultKind.FLUSH, FaultKind.REDIS, FaultKind.POSTGRES]
    )
    assert all(0 < one.at + one.lasts < 60 for one in found if one.kind in _SERVERS)


_SERVERS = {FaultKind.FLUSH, FaultKind.REDIS, FaultKind.POSTGRES}


@pytest.mark.parametrize("workers", [2, 3])
def test_at_least_one_worker_is_not_stopped(workers: int) -> None:
    for seed in range(50):
        found = schedule(seed, 120, workers)
        for moment in range(120):
            assert len(_stopped(found, moment)) < workers


def _stopped(found: list[Fault], moment: float) -> set[int]:
    """Return the slots with a stopped worker; a killed worker is replaced by a running one."""
    until: dict[int, float] = {}
    for one in found:
        if one.at <= moment and one.kind is FaultKind.STOP_WORKER:
            until[one.slot] = one.at + one.lasts
        elif one.at <= moment and one.kind is FaultKind.KILL_WORKER:
            until[one.slot] = 0.0
    return {slot for slot, end in until.items() if end > moment}


def test_workers_are_stopped_for_less_and_for_more_than_a_lease() -> None:
    found = [one for seed in range(20) for one in schedule(seed, 60, 3)]
    assert {one.kind for one in found} == set(FaultKind)
    lasting = [one.lasts for one in found if one.kind is FaultKind.STOP_WORKER]
    assert WORKER_STOPPED[0] <= min(lasting) < 10 < 15 < max(lasting) <= WORKER_STOPPED[1]
    assert {one.slot for one in found} == {0, 1, 2}


def test_a_longer_trial_has_faults_of_servers_in_each_minute() -> None:
    found = [one.at for one in schedule(1, 180, 3) if one.kind is FaultKind.POSTGRES]
    assert [int(at // 60) for at in found] == [0, 1, 2]


def test_clocks_are_up_to_an_hour_wrong() -> None:
    found = [skew(7, number) for number in range(100)]
    assert -SKEW_SECONDS <= min(found) < -1800 < 1800 < max(found) <= SKEW_SECONDS
