"""Whether every run ended as its guarantees promise. Pure: rows in, findings out, each one line."""

from collections import Counter
from collections.abc import Iterator, Mapping

from executions.states import TERMINAL_EXECUTION
from trials.chaos.case import cases
from trials.chaos.endings import of_endings
from trials.chaos.findings import Finding, Kind
from trials.chaos.hearing import of_hearing
from trials.chaos.history import of_history
from trials.chaos.rows import Evidence, Link

OF_RUNTIMES = frozenset({"UNKNOWN_ERROR", "RESOURCE_ERROR"})


def findings(evidence: Evidence) -> list[Finding]:
    """Everything that was not as promised."""
    found = [
        *_lost(evidence),
        *_violated(evidence),
        *_succeeded_twice(evidence.successes),
        *_too_many_died(evidence),
    ]
    for case in cases(evidence):
        found += [*of_history(case), *of_hearing(case), *of_endings(case)]
    return found


def cuts(evidence: Evidence) -> Counter[str]:
    """How many attempts were cut in the middle, by the guarantee of their step: how hard it was."""
    return Counter(
        told.role if told.role == "recover" else step.guarantee.value
        for case in cases(evidence)
        for step in case.plan.steps
        for told in case.cut(step.path)
    )


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
