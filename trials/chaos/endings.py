"""Whether attempts and runs ended in a way that their plan and the weather explain. Pure."""

from collections.abc import Iterator, Sequence

from executions.blueprints.plan import FailureMode, Guarantee, PlannedStep
from executions.states import TERMINAL_EXECUTION, TERMINAL_STEP
from trials.chaos.attempts import Failed, failed_attempts
from trials.chaos.case import Case
from trials.chaos.findings import Finding, Kind
from trials.chaos.hearing import NEVER_AGAIN
from trials.chaos.rows import StepRow

# What a run may end with when everything around it fails; INTERNAL is never among them.
CODES = {
    "succeeded": {""},
    "cancelled": {"CANCELLED"},
    "timed_out": {"TIMEOUT"},
    "failed": {
        "TRANSIENT_ERROR",  # as planned
        "OUTCOME_UNKNOWN",  # an at_most_once step was cut
        "UNKNOWN_ERROR",  # the runtime was killed in the middle of a step
        "RESOURCE_ERROR",  # the runtime was killed before its context was open
        "WORKER_LOST",  # five workers in a row
    },
}
DIED = "the runtime died"


def of_endings(case: Case) -> Iterator[Finding]:
    """What cannot have ended so."""
    pids = {(told.step, *told.order): told.pid for told in case.starts}
    for failed in failed_attempts(case.events):
        pid = pids.get((failed.step, failed.epoch, failed.attempt))
        if reason := _unexplained(case, failed, pid):
            yield Finding(
                kind=Kind.ENDED_WRONG,
                about=f"{case.run.id} {failed.step}: epoch {failed.epoch}, attempt {failed.attempt}"
                f" failed with {failed.code}: {reason}",
            )
    if case.run.state in TERMINAL_EXECUTION:
        for wrong in _wrong(case):
            about = f"{case.run.id} is {case.run.state}, but {wrong}"
            yield Finding(kind=Kind.ENDED_WRONG, about=about)


# --- attempts
def _unexplained(case: Case, failed: Failed, pid: int | None) -> str:
    """Why an attempt cannot have failed so; nothing if it can."""
    planned = case.plan.step(failed.step)
    match failed.code:
        case _ if failed.recovering:
            return ""  # the code is that of the step's own failure
        case "TRANSIENT_ERROR":
            fails = case.fails(failed.step)
            return "" if failed.attempt <= fails else f"{fails} attempts were to fail"
        case "OUTCOME_UNKNOWN":
            return "" if planned.guarantee in NEVER_AGAIN else f"it is {planned.guarantee}"
        case "UNKNOWN_ERROR" | "RESOURCE_ERROR":
            return _died_in_vain(case, failed, pid)
        case "CANCELLED":
            return "" if case.was_cancelled else "nobody has cancelled it"
        case "TIMEOUT" | "WORKER_LOST":
            return ""
    return "nothing explains it"


def _died_in_vain(case: Case, failed: Failed, pid: int | None) -> str:
    row = case.steps[failed.step]
    if failed.code == row.code == "UNKNOWN_ERROR" and not row.message.startswith(DIED):
        return row.message
    if pid is None:  # it died before its step could tell
        return "" if case.killed else "nobody has killed a runtime"
    return "" if pid in case.killed else f"nobody has killed its runtime {pid}"


# --- runs
def _wrong(case: Case) -> Iterator[str]:
    run, rows = case.run, case.steps.values()
    yield from (f"{row.path} is {row.state}" for row in rows if row.state not in TERMINAL_STEP)
    if run.code not in CODES[run.state]:
        yield f"its code is {run.code!r}"
    ending = [step for step in case.plan.steps if ends_run(step, case.steps[step.path])]
    if run.state == "succeeded":
        yield from (f"{step.path} failed, and that ends a run" for step in ending)
        yield from (f"{row.path} is cancelled" for row in rows if row.state == "cancelled")
    elif run.state == "cancelled":
        if not case.was_cancelled:
            yield "nobody has cancelled it"
    elif run.code != "WORKER_LOST":  # which is the run's own end
        yield from _of_a_failure(case, ending)


def _of_a_failure(case: Case, ending: Sequence[PlannedStep]) -> Iterator[str]:
    if len(ending) != 1:
        yield f"of its steps {[step.path for step in ending]} have ended it"
        return
    (last,) = ending
    if (code := case.steps[last.path].code) != case.run.code:
        yield f"{last.path}, which ended it, failed with {code}"
    for later in case.plan.steps[last.position + 1 :]:
        if (state := case.steps[later.path].state) != "skipped":
            yield f"{later.path} is {state}"


def ends_run(step: PlannedStep, row: StepRow) -> bool:
    """Whether the step has failed in a way that ends its run."""
    if row.state != "failed":
        return False
    if step.guarantee is Guarantee.BEST_EFFORT and row.code == "OUTCOME_UNKNOWN":
        return False
    mode = step.then if step.on_failure is FailureMode.RETRY else step.on_failure
    return mode is not FailureMode.CONTINUE
