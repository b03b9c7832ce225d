"""Events of a run, described: one sentence for each kind. Pure; `docs/semantics.md` lists the kinds."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from executions.explain.connections import describe_closed, describe_omitted, describe_refused
from executions.explain.formatting import duration, moment, number_in, sentence
from executions.semantics.reasons import EndReason, QueueReason

Data = Mapping[str, Any]
_UNBILLED = " What this attempt cost is not billed."
# A code that is missing here stands for itself.
_REASONS: Mapping[str, str] = {
    EndReason.RUN_ENDED: "the run is over",
    EndReason.PARKED: "it waits without a slot",
    EndReason.RUNTIME_ENDED: "its runtime ended",
    EndReason.CLAIM_UNATTENDED: "a step was claimed, and no thread ran it",
    EndReason.CLOSE_UNWRITTEN: "its end was not written",
    EndReason.WORKER_DRAINING: "the worker was draining",
    EndReason.WORKER_STOPPED: "the worker was stopped",
    EndReason.WORKER_LOST: "the worker was lost",
    QueueReason.WAKE_TIME: "its time has come",
}


def describe_event(kind: str, step: str, data: Data) -> str:
    """Return the sentence for an event; for an unknown kind, its kind and step."""
    sentence_for = SENTENCES.get(kind)
    if sentence_for is None:
        return f"{kind}, step {step}." if step else f"{kind}."
    described = sentence(sentence_for(step, data))
    return described + _end_of_placement(data) if kind in ENDING else described


# --- of the run
def _queued(_: str, data: Data) -> str:
    match data.get("reason"):
        case None:
            return "Submitted"
        case QueueReason.APPROVED | QueueReason.REJECTED as answer:
            return f"The question was {answer}; the run waits for a slot"
        case QueueReason.EXPIRED:
            return "Nobody answered in time; the run waits for a slot"
        case _:
            return f"The run waits for a slot: {_reason(data)}"


def _waiting(_: str, data: Data) -> str:
    return f"The run waits without a slot{_until(data)}"


def _suspended(step: str, data: Data) -> str:
    asked = f" to step {step}" if step else ""
    return f"The run waits without a slot{_until(data)} for a person's answer{asked}"


def _ended(how: str) -> "SentenceFor":
    def describe_end(_: str, data: Data) -> str:
        reason = f" ({_reason(data)})" if "reason" in data else ""
        return f"The run {how}{_code(data)}{reason}"

    return describe_end


def _cancelled(_: str, __: Data) -> str:
    return "The run was cancelled"


def _cancel_requested(_: str, data: Data) -> str:
    return f"{data.get('actor') or 'Somebody'} asked to cancel the run"


# --- of its steps
def _started(step: str, data: Data) -> str:
    return f"Step {step} began{_attempt(data)}"


def _succeeded(step: str, data: Data) -> str:
    pause = _seconds(data, "wake_s")
    pauses = f". The run pauses for {duration(pause)}" if pause else ""
    if "approval" in data:
        by = f", given by {data['actor']}" if "actor" in data else ""
        return f"Step {step} succeeded with the answer to question {data['approval']}{by}{pauses}"
    if "code" in data:
        return f"Step {step}, which had failed with {data['code']}, was recovered{_after(data)}{pauses}"
    return f"Step {step} succeeded{_after(data)}{pauses}"


def _failed(step: str, data: Data) -> str:
    return f"{_failure(step, data)}.{_unbilled(data)}"


def _retrying(step: str, data: Data) -> str:
    if data.get("recovering"):
        return f"{_failure(step, data)}; its recovery node runs next.{_unbilled(data)}"
    wait = _seconds(data, "retry_s")
    when = f" in {duration(wait)}" if wait else ""
    where = ", without a slot until then" if _seconds(data, "wake_s") else ""
    return f"{_failure(step, data)} and is retried{when}{where}.{_unbilled(data)}"


def _asks(step: str, data: Data) -> str:
    time = _seconds(data, "wake_s")
    limit = f" and waits at most {duration(time)} for the answer" if time else ""
    return f"Step {step} asks a person{limit}"


def _skipped(step: str, _: Data) -> str:
    return f"Step {step} was skipped: its condition did not hold"


def _step_cancelled(step: str, data: Data) -> str:
    return f"Step {step} was cancelled{_after(data)}{_attempt(data)}.{_unbilled(data)}"


def _log(step: str, data: Data) -> str:
    lines = data.get("lines", "some")
    return f"Step {step} wrote {lines} line{'' if lines == 1 else 's'} of log"


def _progress(step: str, data: Data) -> str:
    fraction = number_in(data, "fraction")
    how_far = f"is at {fraction:.0%}" if fraction is not None else "goes on"
    message = f": {data['message']}" if data.get("message") else ""
    return f"Step {step} {how_far}{message}"


# --- of its placements
def _began(_: str, data: Data) -> str:
    return f"Placed on {_worker(data)}{_placement(data)}"


def _lost(step: str, data: Data) -> str:
    if data.get("reason", EndReason.WORKER_LOST) == EndReason.WORKER_LOST:
        happened = f"{_the_worker(data)} was lost"
    else:
        happened = f"{_the_worker(data)} lost the run ({_reason(data)})"
    return happened + _cut(step, data)


def _handed_over(step: str, data: Data) -> str:
    reason = f" ({_reason(data)})" if "reason" in data else ""
    happened = f"{_the_worker(data)} handed the run over{reason}"
    return happened + _cut(step, data)


def _placement_ended(step: str, data: Data) -> str:
    """Describe an event of before `placement.lost` and `placement.handed_over` existed."""
    reason = f": {_reason(data)}" if "reason" in data else ""
    return f"The placement ended{reason}{_cut(step, data)}"


def _restarted(_: str, data: Data) -> str:
    reason = _reason(data) or _REASONS[EndReason.RUNTIME_ENDED]
    return f"The run goes on in a new context on the same worker, since {reason}{_placement(data)}"


def _refused(step: str, data: Data) -> str:
    of_step = f" of step {step}" if step else ""
    wanted = {
        "claim": f"to begin {f'step {step}' if step else 'a step'}",
        "checkpoint": f"to write a checkpoint{of_step}",
        "close": "to end it",
    }.get(data.get("what", ""), f"to write something{of_step}")
    held = "which no longer held the run"
    return f"{_worker(data)}, {held}, wanted {wanted} and was refused{_placement(data)}"


# --- parts of sentences
def _reason(data: Data) -> str:
    code = str(data.get("reason", ""))
    return _REASONS.get(code, code)


def _failure(step: str, data: Data) -> str:
    silence = f", whose question {data['approval']} nobody answered," if "approval" in data else ""
    return f"Step {step}{silence} failed{_code(data)}{_after(data)}{_attempt(data)}"


def _cut(step: str, data: Data) -> str:
    """Describe the effect on a step. Only a running one was interrupted; one that waits for its retry still does."""
    if not step:
        return ""
    if not data.get("unbilled"):
        return f"; step {step} will still be retried"
    return f"; step {step} was interrupted and will run again.{_UNBILLED}"


def _end_of_placement(data: Data) -> str:
    by = f" by {data['by']}" if "by" in data else ""
    return f" (placement {data['epoch']} ended{by})" if "epoch" in data else ""


def _placement(data: Data) -> str:
    return f" (placement {data['epoch']})" if "epoch" in data else ""


def _worker(data: Data) -> str:
    return str(data.get("worker") or "a worker")


def _the_worker(data: Data) -> str:
    return f"The worker {data['worker']}" if data.get("worker") else "The worker"


def _attempt(data: Data) -> str:
    return f" (attempt {data['attempt']})" if "attempt" in data else ""


def _code(data: Data) -> str:
    return f" with {data['code']}" if data.get("code") else ""


def _unbilled(data: Data) -> str:
    return _UNBILLED if data.get("unbilled") else ""


def _after(data: Data) -> str:
    took = number_in(data, "ms")
    return "" if took is None else f" after {duration(took / 1000)}"


def _until(data: Data) -> str:
    until = data.get("until")
    try:
        return f" until {moment(datetime.fromisoformat(until))}" if until else ""
    except (TypeError, ValueError):
        return ""


def _seconds(data: Data, name: str) -> float:
    return number_in(data, name) or 0.0


SentenceFor = Callable[[str, Data], str]
SENTENCES: Mapping[str, SentenceFor] = {
    "execution.queued": _queued,
    "execution.waiting": _waiting,
    "execution.suspended": _suspended,
    "execution.succeeded": _ended("succeeded"),
    "execution.failed": _ended("failed"),
    "execution.timed_out": _ended("timed out"),
    "execution.cancelled": _cancelled,
    "execution.cancel_requested": _cancel_requested,
    "step.started": _started,
    "step.succeeded": _succeeded,
    "step.failed": _failed,
    "step.retrying": _retrying,
    "step.suspended": _asks,
    "step.skipped": _skipped,
    "step.cancelled": _step_cancelled,
    "step.log": _log,
    "step.progress": _progress,
    "placement.began": _began,
    "placement.lost": _lost,
    "placement.handed_over": _handed_over,
    "placement.ended": _placement_ended,
    "context.restarted": _restarted,
    "connection.closed": describe_closed,
    "connection.refused": describe_refused,
    "connection.omitted": describe_omitted,
    "fence.refused": _refused,
}
# These end the run's placement, if it had one.
ENDING = frozenset({
    "execution.waiting", "execution.suspended", "execution.succeeded", "execution.failed", "execution.timed_out",
    "execution.cancelled", "placement.lost", "placement.handed_over", "placement.ended",
})  # fmt: skip
