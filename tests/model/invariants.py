"""What holds for every run, whatever happens to it."""

from itertools import pairwise
from uuid import UUID

from executions.models import Execution, ExecutionEvent, Step
from executions.placement.models import Due
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
from tests.model.driver import Driver

_RUN_STATES = {f"execution.{state.value}": state for state in ExecutionState} | {
    "placement.ended": ExecutionState.QUEUED,
    "step.started": ExecutionState.RUNNING,
}
_STEP_STATES = {f"step.{state.value}": state for state in StepState} | {
    "step.started": StepState.RUNNING,
    "placement.ended": StepState.PENDING,
    "execution.waiting": StepState.PENDING,
}


def check_invariants(tenant: TenantRef, execution_id: UUID, driver: Driver) -> None:
    """All of them."""
    events_of(tenant, execution_id)  # numbered without a gap
    _nothing_is_left(execution_id, driver)
    _runtimes_are_closed(driver)
    _completed_steps_ran_once(tenant, execution_id, driver)
    _every_transition_is_allowed(tenant, execution_id)
    assert all(len(keys) == 1 for keys in driver.keys.values())


def _nothing_is_left(execution_id: UUID, driver: Driver) -> None:
    assert ticket_of(execution_id) is None
    with platform_scope():
        assert not Due.objects.filter(ref=execution_id).exists()
    for host in driver.hosts:
        assert not held_by(host.machine)
        assert host.gone or not host.machine.contexts.all()


def _runtimes_are_closed(driver: Driver) -> None:
    """Once each; of a worker that was lost they end with it, if it did not come to closing them."""
    for host in driver.hosts:
        for runtime in host.backend.runtimes:
            assert not runtime.alive
            assert runtime.closed == 1 or (host.gone and runtime.closed == 0)


def _completed_steps_ran_once(tenant: TenantRef, execution_id: UUID, driver: Driver) -> None:
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
    run = [_RUN_STATES[kind] for kind, _ in rows if kind in _RUN_STATES]
    assert run[-1] is state
    for before, after in pairwise(run):
        assert before is after or after in EXECUTION_TRANSITIONS[before]
    for path, last in final.items():
        seen = [_STEP_STATES[kind] for kind, step in rows if step == path and kind in _STEP_STATES]
        states = [StepState.PENDING, *seen, StepState(last)]
        # What was at work has an event that says how it ended.
        assert states[-1] is states[-2] or states[-2] is StepState.PENDING, (path, states)
        for old, new in pairwise(states):
            assert old is new or new in STEP_TRANSITIONS[old], (path, states)
