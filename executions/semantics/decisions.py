"""Decisions after an attempt of a step has ended. Pure: sync, no state, no I/O."""

from dataclasses import dataclass

from executions.blueprints.plan import FailureMode, Guarantee, Plan, PlannedStep
from executions.semantics.seeds import backoff_ms, derive_seed
from executions.states import ExecutionState, StepState
from isolane.results import Code, StepResult

NEVER_AGAIN = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.BEST_EFFORT})  # once they have begun
MAX_HELD_SECONDS = 60.0  # a longer backoff gives the slot away


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDecision:
    """The decision that is written when an attempt has ended."""

    state: StepState
    next_step: str
    outcome: ExecutionState | None = None
    retry_s: float | None = None  # seconds until the step is tried again
    recovering: bool = False  # the next attempt runs its recovery node
    pause_s: float = 0.0  # seconds until the run goes on, or its question expires

    @property
    def wake_s(self) -> float:
        """Seconds that the run waits without a slot; 0 if it keeps its slot."""
        if self.retry_s is not None and self.retry_s > MAX_HELD_SECONDS:
            return self.retry_s
        return self.pause_s


def after_step(
    plan: Plan,
    result: StepResult,
    *,
    seed: int,
    recovers_from: Code | None = None,
    run_is_over: bool = False,
) -> StepDecision:
    """Decide by the step's failure mode.

    `recovers_from`: the code the step had failed with, if the recovery node has ended.
    `run_is_over`: the run has used up its time.
    """
    step = plan.step(result.step)
    if result.question:
        return StepDecision(
            state=StepState.SUSPENDED,
            next_step=step.path,
            recovering=recovers_from is not None,
            pause_s=result.pause_s,
        )
    if result.code is None:
        return _onward(plan, step, StepState.SUCCEEDED, pause_s=result.pause_s)
    if result.code is Code.CANCELLED:
        return _end(step, ExecutionState.CANCELLED)
    if run_is_over:
        return _end(step, ExecutionState.TIMED_OUT)
    if result.code is Code.BUDGET_EXCEEDED:
        return _end(step, ExecutionState.FAILED)
    if recovers_from is not None:
        return _abort(step, recovers_from)
    return _failed(plan, step, result.code, attempt=result.attempt, seed=seed)


def after_skip(plan: Plan, path: str) -> StepDecision:
    """Decide after the step's condition did not hold."""
    return _onward(plan, plan.step(path), StepState.SKIPPED)


def after_loss(plan: Plan, path: str, *, recovering: bool) -> StepDecision | None:
    """Decide after the worker was lost during a step; None means that it may run again, which uses no attempt."""
    step = plan.step(path)
    if recovering or step.guarantee not in NEVER_AGAIN:
        return None
    if step.guarantee is Guarantee.BEST_EFFORT:
        return _onward(plan, step, StepState.FAILED)
    return _acted(plan, step, step.on_failure, Code.OUTCOME_UNKNOWN)


def _failed(plan: Plan, step: PlannedStep, code: Code, *, attempt: int, seed: int) -> StepDecision:
    if step.on_failure is not FailureMode.RETRY:
        return _acted(plan, step, step.on_failure, code)
    if not code.retryable or attempt >= step.attempts:
        return _acted(plan, step, step.then, code)
    wait_ms = backoff_ms(code.base_ms, seed=derive_seed(seed, step.position), attempt=attempt - 1)
    return StepDecision(state=StepState.RETRYING, next_step=step.path, retry_s=wait_ms / 1000)


def _acted(plan: Plan, step: PlannedStep, mode: FailureMode, code: Code) -> StepDecision:
    if mode is FailureMode.CONTINUE:
        return _onward(plan, step, StepState.FAILED)
    if mode is FailureMode.RECOVER:
        return StepDecision(
            state=StepState.RETRYING, next_step=step.path, retry_s=0.0, recovering=True
        )
    return _abort(step, code)


def _abort(step: PlannedStep, code: Code) -> StepDecision:
    timed_out = code is Code.TIMEOUT
    return _end(step, ExecutionState.TIMED_OUT if timed_out else ExecutionState.FAILED)


def _end(step: PlannedStep, outcome: ExecutionState) -> StepDecision:
    cancelled = outcome is ExecutionState.CANCELLED
    state = StepState.CANCELLED if cancelled else StepState.FAILED
    return StepDecision(state=state, next_step="", outcome=outcome)


def _onward(
    plan: Plan, step: PlannedStep, state: StepState, *, pause_s: float = 0.0
) -> StepDecision:
    following = plan.after(step.path)
    # After a pause, the wake-up ends a run that has no steps left.
    over = not following and not pause_s
    return StepDecision(
        state=state,
        next_step=following,
        outcome=ExecutionState.SUCCEEDED if over else None,
        pause_s=pause_s,
    )
