"""Invariants of every run, whatever happens to it."""

from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

from executions.models import Approval, ApprovalState, Execution, ExecutionEvent, Step
from executions.placement.models import Due, DueKind
from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    TERMINAL_STEP,
    ExecutionState,
    StepState,
)
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import events_of, held_by, ticket_of

if TYPE_CHECKING:
    from tests.model.driver import Driver

_RUN_STATES = {f"execution.{state.value}": state for state in ExecutionState} | {
    "placement.lost": ExecutionState.QUEUED,
    "placement.handed_over": ExecutionState.QUEUED,
    "step.started": ExecutionState.RUNNING,
}
_STEP_STATES = {f"step.{state.value}": state for state in StepState} | {
    "step.started": StepState.RUNNING,
    "placement.lost": StepState.PENDING,
    "placement.handed_over": StepState.PENDING,
    "execution.waiting": StepState.PENDING,
}


def check_suspended(tenant: TenantRef, execution_id: UUID, driver: "Driver") -> None:
    """While a person is asked, nothing is kept for the answer but the question and its time."""
    ticket = ticket_of(execution_id)
    assert ticket is not None
    assert (ticket.worker_id, ticket.deadline) == (None, None)
    _nothing_is_held(driver)
    _runtimes_are_closed(driver)
    with platform_scope():
        (due,) = Due.objects.filter(ref=execution_id)
    with tenant_scope(tenant):
        (asked,) = Approval.objects.filter(execution_id=execution_id, state=ApprovalState.OPEN)
        (step,) = Step.objects.filter(execution_id=execution_id, state=StepState.SUSPENDED)
        run = Execution.objects.get(pk=execution_id)
    assert (due.kind, due.at) == (DueKind.APPROVAL, asked.expires_at)
    assert (asked.step, asked.prompt) == (step.path, run.question)


def check_invariants(tenant: TenantRef, execution_id: UUID, driver: "Driver") -> None:
    """Of a run that has ended."""
    events_of(tenant, execution_id)  # numbered without a gap
    _nothing_is_left(execution_id)
    _nothing_is_held(driver)
    _questions_have_ended(tenant, execution_id)
    _runtimes_are_closed(driver)
    _completed_steps_ran_once(tenant, execution_id, driver)
    _every_transition_is_allowed(tenant, execution_id)
    assert all(len(keys) == 1 for keys in driver.keys.values())


def _nothing_is_left(execution_id: UUID) -> None:
    assert ticket_of(execution_id) is None
    with platform_scope():
        assert not Due.objects.filter(ref=execution_id).exists()


def _nothing_is_held(driver: "Driver") -> None:
    """No slot, and no context."""
    for host in driver.hosts:
        assert not held_by(host.boot)
        assert host.gone or not host.boot.contexts.all()


def _questions_have_ended(tenant: TenantRef, execution_id: UUID) -> None:
    with tenant_scope(tenant):
        asked = list(Approval.objects.filter(execution_id=execution_id).order_by("number"))
        question = Execution.objects.get(pk=execution_id).question
    assert [each.number for each in asked] == list(range(1, len(asked) + 1))
    for each in asked:
        answered = each.state in {ApprovalState.APPROVED, ApprovalState.REJECTED}
        assert each.state != ApprovalState.OPEN
        assert each.answered_at is not None
        assert bool(each.answered_by) == answered
    assert not question


def _runtimes_are_closed(driver: "Driver") -> None:
    """Once each; of a worker that was lost they end with it, if it did not come to closing them."""
    for host in driver.hosts:
        for runtime in host.backend.runtimes:
            assert not runtime.alive
            assert runtime.closed == 1 or (host.gone and runtime.closed == 0)


def _completed_steps_ran_once(tenant: TenantRef, execution_id: UUID, driver: "Driver") -> None:
    assert len(driver.successes) == len(set(driver.successes))
    with tenant_scope(tenant):
        steps = dict(Step.objects.filter(execution_id=execution_id).values_list("path", "state"))
    assert {path for path, state in steps.items() if state == "succeeded"} == set(driver.successes)
    assert set(steps.values()) <= set(TERMINAL_STEP)


def _every_transition_is_allowed(tenant: TenantRef, execution_id: UUID) -> None:
    with tenant_scope(tenant):
        events = ExecutionEvent.objects.filter(execution_id=execution_id).order_by("sequence")
        rows = list(events.values_list("kind", "step"))
        final = dict(Step.objects.filter(execution_id=execution_id).values_list("path", "state"))
        state = ExecutionState(Execution.objects.get(pk=execution_id).state)
    assert state in TERMINAL_EXECUTION
    told = [kind for kind, _ in rows if kind in _RUN_STATES]
    # A loss that is told of with the run's end has not queued it.
    ends = [f"execution.{state}" for state in (*TERMINAL_EXECUTION, "waiting", "suspended")]
    run = [
        _RUN_STATES[kind]
        for kind, following in zip(told, [*told[1:], ""], strict=True)
        if kind != "placement.lost" or following not in ends
    ]
    assert run[-1] is state
    for before, after in pairwise(run):
        assert before is after or after in EXECUTION_TRANSITIONS[before]
    # What had begun has an event that says how it ended; what had not ends with its run.
    for path, last in final.items():
        seen = [_STEP_STATES[kind] for kind, step in rows if step == path and kind in _STEP_STATES]
        states = [StepState.PENDING, *seen, StepState(last)]
        assert states[-1] is states[-2] or states[-2] is StepState.PENDING, (path, states)
        for old, new in pairwise(states):
            assert old is new or new in STEP_TRANSITIONS[old], (path, states)
