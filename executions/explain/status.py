"""A run's current status and its reason, described in a sentence or two. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from executions.explain.formatting import duration, moment, sentence
from executions.explain.limits import WAYS_OUT
from executions.states import ExecutionState, StepState
from resources.isolation_choice import describe_reason


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStatus:
    """The current step of a run, or the one that ended it."""

    path: str
    state: StepState
    attempt: int = 0
    recovering: bool = False
    code: str = ""  # of its last failure
    started_at: datetime | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueStatus:
    """Facts about a run that waits for a slot."""

    since: datetime
    held: int  # slots that its tenant's runs hold
    allowed: int  # slots that they may hold


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """The facts of a run at one moment."""

    at: datetime
    state: ExecutionState
    outcome: str = ""  # the state in which it will end, or has ended
    code: str = ""
    message: str = ""  # the reason for its wait or its end
    question: str = ""
    worker: str = ""  # the last one it ran on
    wake_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    step: StepStatus | None = None
    queue: QueueStatus | None = None
    cancel_requested: bool = False
    isolation: str = ""  # its level
    isolation_reason: str = ""  # code of the rule that set the weakest level that it may get
    cpu_seconds: float = 0.0  # this and the next are 0 if nobody has measured them
    peak_ram_mb: float = 0.0


# For an outcome that is decided, and for one that is reached.
_ENDING: Mapping[str, str] = {
    ExecutionState.SUCCEEDED: "is about to succeed",
    ExecutionState.FAILED: "is about to fail",
    ExecutionState.TIMED_OUT: "is about to time out",
    ExecutionState.CANCELLED: "is about to be cancelled",
}
_ENDED: Mapping[str, str] = {
    ExecutionState.SUCCEEDED: "succeeded",
    ExecutionState.FAILED: "failed",
    ExecutionState.TIMED_OUT: "timed out",
    ExecutionState.CANCELLED: "was cancelled",
}


def describe_status(run: RunStatus) -> str:
    """Return the status and its reason, and the level of the run's isolation with its reason."""
    return " ".join([_status(run), *_level(run)])


def _level(run: RunStatus) -> Iterator[str]:
    if run.isolation:
        reason = describe_reason(run.isolation_reason)
        yield sentence(f"Its level of isolation is {run.isolation}: {reason}")


def _status(run: RunStatus) -> str:
    if run.outcome and run.finished_at is None:
        return f"{_end(run, _ENDING)} Its context is being closed."
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
            return _end(run, _ENDED)
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
        return f"{waits}: its tenant's runs hold all of their slots ({run.queue.allowed})."
    return f"{waits}; it gets the next free one on a suitable worker."


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
    return f"The run has been at {name}{_where(run)} since {since} (attempt {step.attempt})."


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


def _end(run: RunStatus, verbs: Mapping[str, str]) -> str:
    outcome = run.outcome or run.state.value
    described = f"The run {verbs[outcome]}"
    if outcome in {ExecutionState.FAILED, ExecutionState.TIMED_OUT}:
        described += f" with {run.code}" if run.code else ""
        described += f" at step {run.step.path}" if run.step else ""
    if run.started_at and run.finished_at:
        described += f" after {duration((run.finished_at - run.started_at).total_seconds())}"
    told = sentence(f"{described}: {run.message}" if run.message else described)
    return " ".join([told, *_way_out(run, outcome), *_usage(run)])


def _way_out(run: RunStatus, outcome: str) -> Iterator[str]:
    """Name the limit that a run has met."""
    if outcome in {ExecutionState.FAILED, ExecutionState.TIMED_OUT} and run.code in WAYS_OUT:
        yield sentence(WAYS_OUT[run.code])


def _usage(run: RunStatus) -> Iterator[str]:
    if run.cpu_seconds or run.peak_ram_mb:
        cpu, ram = duration(run.cpu_seconds), round(run.peak_ram_mb, 1)
        yield f"It has used {cpu} of processor time, and {ram:g} MiB of RAM at most."


# --- parts of sentences
def _where(run: RunStatus) -> str:
    return f" on {run.worker}" if run.worker else ""


def _until(run: RunStatus) -> str:
    return f" until {moment(run.wake_at)}" if run.wake_at else ""


def _again(step: StepStatus, at: datetime) -> str:
    failed = f", which failed with {step.code}" if step.code else ""
    return f" until {moment(at)} to retry step {step.path}{failed}"
