"""executions.decisions: what follows from a step's result."""

import pytest

from executions.blueprint.plan import plan
from executions.decisions import Checkpoint, after_step
from executions.states import ExecutionState, StepState
from isolane.results import Code, StepResult

PLAN = plan({"name": "flow", "steps": [{"key": key, "uses": "work"} for key in ("one", "two")]})


def test_a_success_leads_to_the_next_step() -> None:
    result = StepResult.succeeded(step="one", attempt=1, output=None)
    expected = Checkpoint(state=StepState.SUCCEEDED, next_step="two", outcome=None)
    assert after_step(PLAN, result) == expected


def test_the_last_success_ends_the_run() -> None:
    result = StepResult.succeeded(step="two", attempt=1, output=None)
    expected = Checkpoint(state=StepState.SUCCEEDED, next_step="", outcome=ExecutionState.SUCCEEDED)
    assert after_step(PLAN, result) == expected


@pytest.mark.parametrize("code", Code)
def test_a_failure_ends_the_run(code: Code) -> None:
    result = StepResult.failed(step="one", attempt=1, code=code, message="")
    ends = {
        Code.CANCELLED: (StepState.CANCELLED, ExecutionState.CANCELLED),
        Code.TIMEOUT: (StepState.FAILED, ExecutionState.TIMED_OUT),
    }
    state, outcome = ends.get(code, (StepState.FAILED, ExecutionState.FAILED))
    assert after_step(PLAN, result) == Checkpoint(state=state, next_step="", outcome=outcome)
