"""What follows from a step's result. Pure: sync, no state, no I/O."""

from dataclasses import dataclass

from executions.blueprint.plan import Plan
from executions.states import ExecutionState, StepState
from isolane.results import Code, StepResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """What follows from a step's result."""

    state: StepState
    next_step: str
    outcome: ExecutionState | None


_ENDS = {
    Code.CANCELLED: (StepState.CANCELLED, ExecutionState.CANCELLED),
    Code.TIMEOUT: (StepState.FAILED, ExecutionState.TIMED_OUT),
}


def after_step(plan: Plan, result: StepResult) -> Checkpoint:
    """A success leads to the next step or to the end; a failure ends the run."""
    if result.code is None:
        following = plan.after(result.step)
        outcome = None if following else ExecutionState.SUCCEEDED
        return Checkpoint(state=StepState.SUCCEEDED, next_step=following, outcome=outcome)
    state, ended = _ENDS.get(result.code, (StepState.FAILED, ExecutionState.FAILED))
    return Checkpoint(state=state, next_step="", outcome=ended)
