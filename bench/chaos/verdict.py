"""Whether every run ended as its guarantees promise. Pure: rows in, findings out, each one line."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from bench.chaos.attempts import Failed, failed_attempts
from bench.chaos.findings import Finding, Kind
from bench.chaos.plan import SLEEP
from bench.chaos.rows import EventRow, Evidence, Link, RunRow, StepRow, Told
from executions.blueprint.plan import FailureMode, Guarantee, Plan, PlannedStep
from executions.states import TERMINAL_EXECUTION, TERMINAL_STEP

NEVER_AGAIN = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.BEST_EFFORT})
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
OF_RUNTIMES = frozenset({"UNKNOWN_ERROR", "RESOURCE_ERROR"})
_ENDS = {f"execution.{state}" for state in TERMINAL_EXECUTION}
_STEP_ENDS = {f"step.{state}" for state in TERMINAL_STEP}
Steps = Mapping[str, StepRow]
Row = TypeVar("Row", StepRow, EventRow, Told)


def findings(evidence: Evidence) -> list[Finding]:
    """Everything that was not as promised."""
    return [
        *_lost(evidence),
        *_violated(evidence),
        *_succeeded_twice(evidence.successes),
        *_of_runs(evidence),
        *_too_many_died(evidence),
    ]


def _lost(evidence: Evidence) -> Iterator[Finding]:
    known = {run.id for run in evidence.runs}
    for run_id in sorted(evidence.submitted - known, key=str):
        yield Finding(kind=Kind.LOST, about=f"{run_id} was submitted and is not there")
    for run_id in sorted(known - evidence.submitted, key=str):
        yield Finding(kind=Kind.TWICE, about=f"{run_id} is there, and nobody has submitted it")
    for run in evidence.runs:
        if run.state not in TERMINAL_EXECUTION:
            yield Finding(kind=Kind.LOST, about=f"{run.id} of {run.tenant} is {run.state}")


def _violated(evidence: Evidence) -> Iterator[Finding]:
    for found in evidence.heard.violations:
        yield Finding(
            kind=Kind.TWICE,
            about=f"{found.execution} {found.step}: {found.what} was taken when epoch {found.epoch},"
            f" attempt {found.attempt} came",
        )


def _succeeded_twice(successes: Mapping[Link, int]) -> Iterator[Finding]:
    """A duplicate is ignored; a link that returns would have the next one sent a second time."""
    for (execution, epoch, path), number in sorted(successes.items()):
        if number > 1:
            yield Finding(
                kind=Kind.TWICE,
                about=f"{execution} {path}: {number} tasks of epoch {epoch} succeeded",
            )


def _too_many_died(evidence: Evidence) -> Iterator[Finding]:
    """A runner has one run at a time, so each that is killed fails one attempt at most."""
    died = [
        f"{event.execution} {event.step}"
        for event in evidence.events
        if event.kind in {"step.failed", "step.retrying"} and event.data.get("code") in OF_RUNTIMES
    ]
    if len(died) > len(evidence.killed):
        yield Finding(
            kind=Kind.ENDED_WRONG,
            about=f"{len(died)} attempts failed with their runtime, but {len(evidence.killed)} were"
            f" killed: {', '.join(died)}",
        )


# --- run by run
def _of_runs(evidence: Evidence) -> Iterator[Finding]:
    steps = _grouped(evidence.steps)
    events = _grouped(evidence.events)
    starts, dones = _grouped(evidence.heard.starts), _grouped(evidence.heard.dones)
    effects = Counter((effect.execution, effect.step) for effect in evidence.heard.effects)
    for run in evidence.runs:
        plan, rows = evidence.plans[run.blueprint], {row.path: row for row in steps[run.id]}
        yield from _numbering(run, events[run.id])
        yield from _claims(run, events[run.id])
        yield from _failures(run, plan, rows, events[run.id], starts[run.id], evidence)
        yield from _ending(run, plan, rows, evidence)
        for planned in plan.steps:
            if planned.uses == SLEEP:
                continue
            began = sorted(_of(starts[run.id], planned.path), key=lambda told: told.order)
            done = _of(dones[run.id], planned.path)
            yield from _began(run, planned, began, events[run.id])
            yield from _overlaps(run, planned, began, done)
            row = rows[planned.path]
            yield from _after_the_end(run, row, began)
            yield from _is_done(run, planned, row, done, effects[run.id, planned.path])


def _numbering(run: RunRow, events: Sequence[EventRow]) -> Iterator[Finding]:
    numbers = [event.sequence for event in events]
    if numbers != list(range(1, len(numbers) + 1)) or run.last_event != len(numbers):
        yield Finding(
            kind=Kind.EVENTS,
            about=f"{run.id} has the events {numbers}, and its last one is to be {run.last_event}",
        )
    ends = [event.kind for event in events if event.kind in _ENDS]
    if run.state in TERMINAL_EXECUTION and ends != [f"execution.{run.state}"]:
        yield Finding(kind=Kind.EVENTS, about=f"{run.id} is {run.state} and ended by {ends}")


def _claims(run: RunRow, events: Sequence[EventRow]) -> Iterator[Finding]:
    """Each attempt is claimed once, and none after its step has ended."""
    claimed: set[tuple[str, int, int]] = set()
    ended: set[str] = set()
    for event in events:
        about = f"{run.id} {event.step}: event {event.sequence}, {event.kind}"
        if event.kind == "step.started":
            claim = (event.step, int(event.data["epoch"]), int(event.data["attempt"]))
            if claim in claimed:
                yield Finding(kind=Kind.TWICE, about=f"{about}, claims {claim[1:]} again")
            if event.step in ended:
                yield Finding(kind=Kind.AGAIN, about=f"{about}, after its end")
            claimed.add(claim)
        elif event.kind in _STEP_ENDS:
            if event.step in ended:
                yield Finding(kind=Kind.AGAIN, about=f"{about}, ends it again")
            ended.add(event.step)


# --- what the judge has heard
def _began(
    run: RunRow, planned: PlannedStep, began: Sequence[Told], events: Sequence[EventRow]
) -> Iterator[Finding]:
    claims = {
        (int(event.data["epoch"]), int(event.data["attempt"]))
        for event in events
        if event.kind == "step.started" and event.step == planned.path
    }
    for told in began:
        if told.order not in claims:
            yield Finding(
                kind=Kind.UNKNOWN_START,
                about=f"{run.id} {planned.path}: epoch {told.epoch}, attempt {told.attempt} began,"
                f" and the claims are {sorted(claims)}",
            )
    attempts = [told.attempt for told in began if told.role == "step"]
    if planned.guarantee in NEVER_AGAIN and len(attempts) > len(set(attempts)):
        yield Finding(
            kind=Kind.TWICE,
            about=f"{run.id} {planned.path} is {planned.guarantee} and began {_list(began)}",
        )
    if planned.guarantee is Guarantee.AT_MOST_ONCE and len(attempts) > 1:
        yield Finding(
            kind=Kind.TWICE,
            about=f"{run.id} {planned.path} is at_most_once and began {_list(began)}",
        )
    if len(set(attempts)) > planned.attempts:
        yield Finding(
            kind=Kind.TWICE,
            about=f"{run.id} {planned.path} has {planned.attempts} attempts and began {_list(began)}",
        )


def _overlaps(
    run: RunRow, planned: PlannedStep, began: Sequence[Told], done: Sequence[Told]
) -> Iterator[Finding]:
    """Who comes later finds everything over that came before."""
    ends = {told.order: told.at for told in done}
    for earlier, later in pairwise(began):
        last = max(earlier.at, ends.get(earlier.order, earlier.at))
        if later.at <= last:
            yield Finding(
                kind=Kind.TWICE,
                about=f"{run.id} {planned.path}: {later.order} began at {later.at:%T.%f}, and"
                f" {earlier.order} was at it until {last:%T.%f}",
            )


def _after_the_end(run: RunRow, row: StepRow, began: Sequence[Told]) -> Iterator[Finding]:
    """Of every terminal state: whoever writes it has ended the runtime, or its lease had the time to."""
    if row.finished_at is None:
        return
    for told in began:
        if told.at > row.finished_at:
            yield Finding(
                kind=Kind.AGAIN,
                about=f"{run.id} {row.path}: {told.order} began at {told.at:%T.%f}, and the step"
                f" was {row.state} at {row.finished_at:%T.%f}",
            )


def _is_done(
    run: RunRow, planned: PlannedStep, row: StepRow, done: Sequence[Told], effects: int
) -> Iterator[Finding]:
    about = f"{run.id} {row.path} ({planned.guarantee})"
    if effects > 1:
        yield Finding(kind=Kind.TWICE, about=f"{about} has {effects} effects, under other keys")
    if row.state != "succeeded":
        return
    role = "recover" if row.cause == "recovered" else "step"
    if (row.epoch, row.attempt) not in {told.order for told in done if told.role == role}:
        yield Finding(
            kind=Kind.MISSING,
            about=f"{about} succeeded in epoch {row.epoch}, attempt {row.attempt}, and {role} was done"
            f" in {_list(done)}",
        )
    if planned.guarantee is Guarantee.EXACTLY_ONCE and role == "step" and effects != 1:
        yield Finding(kind=Kind.MISSING, about=f"{about} succeeded and has {effects} effects")


# --- how attempts and runs ended
def _failures(
    run: RunRow,
    plan: Plan,
    rows: Steps,
    events: Sequence[EventRow],
    starts: Sequence[Told],
    evidence: Evidence,
) -> Iterator[Finding]:
    pids = {(told.step, *told.order): told.pid for told in starts}
    for failed in failed_attempts(events):
        if reason := _unexplained(failed, plan.step(failed.step), rows[failed.step], run, evidence):
            yield Finding(
                kind=Kind.ENDED_WRONG,
                about=f"{run.id} {failed.step}: epoch {failed.epoch}, attempt {failed.attempt}"
                f" failed with {failed.code}: {reason}",
            )
        pid = pids.get((failed.step, failed.epoch, failed.attempt))
        died = failed.code == "UNKNOWN_ERROR" and not failed.recovering and pid is not None
        if died and pid not in evidence.killed:
            yield Finding(
                kind=Kind.ENDED_WRONG,
                about=f"{run.id} {failed.step}: the runtime {pid} of epoch {failed.epoch},"
                f" attempt {failed.attempt} died, and nobody has killed it",
            )


def _unexplained(
    failed: Failed, planned: PlannedStep, row: StepRow, run: RunRow, evidence: Evidence
) -> str:
    """Why an attempt cannot have failed so; nothing if it can."""
    if failed.recovering:
        return ""  # the code is that of the step's own failure
    match failed.code:
        case "TRANSIENT_ERROR":
            fails = planned.parameters.get("fails", 0)
            return "" if failed.attempt <= fails else f"{fails} attempts were to fail"
        case "OUTCOME_UNKNOWN":
            return "" if planned.guarantee in NEVER_AGAIN else f"it is {planned.guarantee}"
        case "UNKNOWN_ERROR" if row.code == failed.code and not row.message.startswith(DIED):
            return row.message
        case "UNKNOWN_ERROR" | "RESOURCE_ERROR":
            return "" if evidence.killed else "nobody has killed a runtime"
        case "CANCELLED":
            return "" if run.id in evidence.cancelled else "nobody has cancelled it"
        case "TIMEOUT" | "WORKER_LOST":
            return ""
    return "nothing explains it"


def _ending(run: RunRow, plan: Plan, rows: Steps, evidence: Evidence) -> Iterator[Finding]:
    if run.state not in TERMINAL_EXECUTION:
        return
    wrong = [
        f"{row.path} is {row.state}" for row in rows.values() if row.state not in TERMINAL_STEP
    ]
    if run.code not in CODES[run.state]:
        wrong.append(f"its code is {run.code!r}")
    if run.state == "cancelled" and run.id not in evidence.cancelled:
        wrong.append("nobody has cancelled it")
    ending = [step for step in plan.steps if ends_run(step, rows[step.path])]
    if run.state == "succeeded":
        wrong += [f"{step.path} failed, and that ends a run" for step in ending]
        wrong += [f"{row.path} is cancelled" for row in rows.values() if row.state == "cancelled"]
    if run.state in {"failed", "timed_out"} and run.code != "WORKER_LOST":
        wrong += _of_a_failure(run, plan, rows, ending)
    for line in wrong:
        yield Finding(kind=Kind.ENDED_WRONG, about=f"{run.id} is {run.state}, but {line}")


def _of_a_failure(
    run: RunRow, plan: Plan, rows: Steps, ending: Sequence[PlannedStep]
) -> Iterable[str]:
    if len(ending) != 1:
        return [f"of its steps {[step.path for step in ending]} have ended it"]
    (last,) = ending
    wrong = []
    if rows[last.path].code != run.code:
        wrong.append(f"{last.path}, which ended it, failed with {rows[last.path].code}")
    behind = plan.steps[last.position + 1 :]
    wrong += [
        f"{s.path} is {rows[s.path].state}" for s in behind if rows[s.path].state != "skipped"
    ]
    return wrong


def ends_run(step: PlannedStep, row: StepRow) -> bool:
    """Whether the step has failed in a way that ends its run."""
    if row.state != "failed":
        return False
    if step.guarantee is Guarantee.BEST_EFFORT and row.code == "OUTCOME_UNKNOWN":
        return False
    mode = step.then if step.on_failure is FailureMode.RETRY else step.on_failure
    return mode is not FailureMode.CONTINUE


def _grouped(rows: Iterable[Row]) -> "defaultdict[UUID, list[Row]]":
    found: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.execution].append(row)
    return found


def _of(told: Sequence[Told], path: str) -> list[Told]:
    return [one for one in told if one.step == path]


def _list(told: Sequence[Told]) -> str:
    return ", ".join(f"({one.epoch}, {one.attempt}) as {one.role}" for one in told) or "none"
