"""Check that plan and faults explain how attempts and runs ended. Pure."""

from collections.abc import Iterator, Sequence

from executions.blueprints.plan import FailureMode, Guarantee, PlannedStep
from executions.semantics.reasons import EndReason
from executions.states import TERMINAL_EXECUTION, TERMINAL_STEP
from trials.chaos.attempts import FailedAttempt, failed_attempts
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.guarantees import NOT_REPEATABLE
from trials.chaos.rows import StepRow
from trials.chaos.run_evidence import RunEvidence

# Codes that faults can cause, by state; INTERNAL is never among them.
CODES = {
    "succeeded": {""},
    "cancelled": {"CANCELLED"},
    "timed_out": {"TIMEOUT"},
    "failed": {
        "TRANSIENT_ERROR",  # as planned
        "OUTCOME_UNKNOWN",  # an at_most_once step was interrupted
        "UNKNOWN_ERROR",  # the runtime was killed during a step
        "RESOURCE_ERROR",  # the runtime was killed before its context was open
        "WORKER_LOST",  # five workers in a row
    },
}
DIED = "the runtime died"


def outcome_findings(evidence: RunEvidence) -> Iterator[Finding]:
    """Yield outcomes without an explanation."""
    pids = {(start.step, *start.order): start.pid for start in evidence.starts}
    for failed in failed_attempts(evidence.events):
        pid = pids.get((failed.step, failed.epoch, failed.attempt))
        if reason := _unexplained(evidence, failed, pid):
            yield Finding(
                kind=FindingKind.ENDED_WRONG,
                about=f"{evidence.run.id} {failed.step}: epoch {failed.epoch}, attempt {failed.attempt}"
                f" failed with {failed.code}: {reason}",
            )
    if evidence.run.state in TERMINAL_EXECUTION:
        for wrong in _wrong(evidence):
            about = f"{evidence.run.id} is {evidence.run.state}, but {wrong}"
            yield Finding(kind=FindingKind.ENDED_WRONG, about=about)


# --- attempts
def _unexplained(evidence: RunEvidence, failed: FailedAttempt, pid: int | None) -> str:
    """Return why this failure cannot be, or an empty text if it can."""
    planned = evidence.plan.step(failed.step)
    match failed.code:
        case _ if failed.recovering:
            return ""  # the code is that of the step's own failure
        case "TRANSIENT_ERROR":
            fails = evidence.planned_failures(failed.step)
            return "" if failed.attempt <= fails else f"{fails} attempts were planned to fail"
        case "OUTCOME_UNKNOWN":
            return "" if planned.guarantee in NOT_REPEATABLE else f"it is {planned.guarantee}"
        case "UNKNOWN_ERROR" | "RESOURCE_ERROR":
            return _unexplained_death(evidence, failed, pid)
        case "CANCELLED":
            return "" if evidence.was_cancelled else "it was not cancelled"
        case "WORKER_LOST":
            return "" if _lost_a_worker(evidence) else "none of its workers was lost"
        case "TIMEOUT":
            return ""
    return "nothing explains it"


def _lost_a_worker(evidence: RunEvidence) -> bool:
    """Return True if a lease ran out; a step that no thread runs is given back by a living worker."""
    return any(
        event.kind == "placement.lost" and event.data.get("reason") == EndReason.WORKER_LOST
        for event in evidence.events
    )


def _unexplained_death(evidence: RunEvidence, failed: FailedAttempt, pid: int | None) -> str:
    row = evidence.steps[failed.step]
    if failed.code == row.code == "UNKNOWN_ERROR" and not row.message.startswith(DIED):
        return row.message
    if pid is None:  # it died before its step could report the pid
        return "" if evidence.killed else "no fault killed a runtime"
    return "" if pid in evidence.killed else f"no fault killed its runtime {pid}"


# --- runs
def _wrong(evidence: RunEvidence) -> Iterator[str]:
    run, rows = evidence.run, evidence.steps.values()
    yield from (f"{row.path} is {row.state}" for row in rows if row.state not in TERMINAL_STEP)
    if run.code not in CODES[run.state]:
        yield f"its code is {run.code!r}"
    ending = [step for step in evidence.plan.steps if ends_run(step, evidence.steps[step.path])]
    if run.state == "succeeded":
        yield from (f"{step.path} failed, and that ends a run" for step in ending)
        yield from (f"{row.path} is cancelled" for row in rows if row.state == "cancelled")
    elif run.state == "cancelled":
        if not evidence.was_cancelled:
            yield "it was not cancelled"
    elif run.code != "WORKER_LOST":  # which ends a run without a step
        yield from _wrong_failure(evidence, ending)


def _wrong_failure(evidence: RunEvidence, ending: Sequence[PlannedStep]) -> Iterator[str]:
    if len(ending) != 1:
        yield f"these steps ended it: {[step.path for step in ending]}"
        return
    (last,) = ending
    if (code := evidence.steps[last.path].code) != evidence.run.code:
        yield f"{last.path}, which ended it, failed with {code}"
    for later in evidence.plan.steps[last.position + 1 :]:
        if (state := evidence.steps[later.path].state) != "skipped":
            yield f"{later.path} is {state}"


def ends_run(step: PlannedStep, row: StepRow) -> bool:
    """Return True if the step failed in a way that ends its run."""
    if row.state != "failed":
        return False
    if step.guarantee is Guarantee.BEST_EFFORT and row.code == "OUTCOME_UNKNOWN":
        return False
    mode = step.then if step.on_failure is FailureMode.RETRY else step.on_failure
    return mode is not FailureMode.CONTINUE
