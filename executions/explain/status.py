"""How a run stands at one moment, and why, told in a sentence or two. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from executions.explain.formatting import duration, moment, sentence
from executions.states import ExecutionState, StepState


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStatus:
    """The step that a run is at, or that has ended it."""

    path: str
    state: StepState
    attempt: int = 0
    recovering: bool = False
    code: str = ""  # of its last failure
    started_at: datetime | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueStatus:
    """What is known of a run that waits for a slot."""

    since: datetime
    held: int  # slots that runs of its tenant hold
    allowed: int  # that they may hold


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """The facts of a run at one moment."""

    at: datetime
    state: ExecutionState
    outcome: str = ""  # how it will end, or has ended
    code: str = ""
    message: str = ""  # why it waits, or how it ended
    question: str = ""
    worker: str = ""  # where it ran last
    wake_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    step: StepStatus | None = None
    queue: QueueStatus | None = None
    cancel_requested: bool = False


def describe_status(run: RunStatus) -> str:
    """How it stands and why."""
    if run.outcome and run.finished_at is None:
        return f"{_end(run, 'is about to end')} Its context is being closed."
    if run.cancel_requested:
        return _being_cancelled(run)
    match run.state:
        case ExecutionState.QUEUED:
            return _queued(run)
        case ExecutionState.RUNNING:
            return _running(run)
        case ExecutionState.WAITING:
            return _waiting(run)
        case ExecutionState.SUSPENDED:
            return _suspended(run)
        case (
            ExecutionState.SUCCEEDED
            | ExecutionState.FAILED
            | ExecutionState.TIMED_OUT
            | ExecutionState.CANCELLED
        ):
            return _end(run, "ended")
        case unknown:
            assert_never(unknown)


def _being_cancelled(run: RunStatus) -> str:
    step = run.step
    if step is None or step.state is not StepState.RUNNING:
        return "The run is being cancelled."
    return f"The run is being cancelled; step {step.path}{_where(run)} has been asked to stop."


def _queued(run: RunStatus) -> str:
    if run.queue is None:
        begins = f"; step {run.step.path} is about to begin" if run.step else ""
        return f"The run has a slot{begins}."
    waits = f"The run has waited for a slot since {moment(run.queue.since)}"
    if run.message:
        return f"{waits}. {sentence(run.message)}"
    if run.queue.held >= run.queue.allowed:
        return f"{waits}: its tenant's runs hold as many as they may ({run.queue.allowed})."
    return f"{waits}; it gets the next one that is free on a worker that fits."


def _running(run: RunStatus) -> str:
    step = run.step
    if step is None:
        return f"The run holds a slot{_where(run)}."
    name = f"the recovery node of step {step.path}" if step.recovering else f"step {step.path}"
    if step.retry_at and step.retry_at > run.at:
        return f"The run holds a slot{_where(run)} and waits{_again(step, step.retry_at)}."
    if step.state is not StepState.RUNNING or step.started_at is None:
        return f"The run holds a slot{_where(run)}; {name} is next."
    since = moment(step.started_at)
    return f"The run is at {name}{_where(run)} since {since} (attempt {step.attempt})."


def _waiting(run: RunStatus) -> str:
    step, waits = run.step, "The run waits, without a slot,"
    if step and step.retry_at:
        return f"{waits}{_again(step, step.retry_at)}."
    then = f"goes on with step {step.path}" if step else "ends"
    return f"{waits}{_until(run)} and then {then}."


def _suspended(run: RunStatus) -> str:
    asking = f" to step {run.step.path}" if run.step else ""
    waits = f"The run waits, without a slot,{_until(run)} for a person's answer{asking}"
    return sentence(f"{waits}: {run.question}" if run.question else waits)


def _end(run: RunStatus, ends: str) -> str:
    how = run.outcome or run.state.value
    told = f"The run {ends} {how.replace('_', ' ')}"
    if how in {ExecutionState.FAILED, ExecutionState.TIMED_OUT}:
        told += f" with {run.code}" if run.code else ""
        told += f" at step {run.step.path}" if run.step else ""
    if run.started_at and run.finished_at:
        told += f" after {duration((run.finished_at - run.started_at).total_seconds())}"
    return sentence(f"{told}: {run.message}" if run.message else told)


# --- parts of sentences
def _where(run: RunStatus) -> str:
    return f" on {run.worker}" if run.worker else ""


def _until(run: RunStatus) -> str:
    return f" until {moment(run.wake_at)}" if run.wake_at else ""


def _again(step: StepStatus, at: datetime) -> str:
    failed = f", which failed with {step.code}," if step.code else ""
    return f" until {moment(at)} to try step {step.path}{failed} again"
