"""The verdict: check that every run ended as its guarantees promise. Pure: evidence in, findings out."""

from collections import Counter
from collections.abc import Iterator, Mapping

from executions.states import TERMINAL_EXECUTION
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.guarantees import guarantee_findings
from trials.chaos.history import history_findings
from trials.chaos.outcomes import outcome_findings
from trials.chaos.rows import Evidence, Link
from trials.chaos.run_evidence import by_run

RUNTIME_CODES = frozenset({"UNKNOWN_ERROR", "RESOURCE_ERROR"})


def findings(evidence: Evidence) -> list[Finding]:
    """Return all broken promises."""
    found = [
        *_lost(evidence),
        *_violated(evidence),
        *_links_succeeded_twice(evidence.successes),
        *_too_many_runtimes_died(evidence),
    ]
    for run in by_run(evidence):
        found += [*history_findings(run), *guarantee_findings(run), *outcome_findings(run)]
    return found


def interrupted(evidence: Evidence) -> Counter[str]:
    """Count the attempts that faults interrupted, by guarantee: a measure of how hard the trial was."""
    return Counter(
        start.role if start.role == "recover" else step.guarantee.value
        for run in by_run(evidence)
        for step in run.plan.steps
        for start in run.interrupted(step.path)
    )


def _lost(evidence: Evidence) -> Iterator[Finding]:
    known = {run.id for run in evidence.runs}
    for run_id in sorted(evidence.submitted - known, key=str):
        yield Finding(kind=FindingKind.LOST, about=f"{run_id} was submitted and does not exist")
    for run_id in sorted(known - evidence.submitted, key=str):
        yield Finding(kind=FindingKind.TWICE, about=f"{run_id} exists and was not submitted")
    for run in evidence.runs:
        if run.state not in TERMINAL_EXECUTION:
            yield Finding(kind=FindingKind.LOST, about=f"{run.id} of {run.tenant} is {run.state}")


def _violated(evidence: Evidence) -> Iterator[Finding]:
    for found in evidence.observed.violations:
        yield Finding(
            kind=FindingKind.TWICE,
            about=f"{found.execution} {found.step}: {found.what} was in use when epoch {found.epoch},"
            f" attempt {found.attempt} began",
        )


def _links_succeeded_twice(successes: Mapping[Link, int]) -> Iterator[Finding]:
    """A duplicate must be ignored: a link that succeeds sends the next one, here a second time."""
    for (execution, epoch, path), number in sorted(successes.items()):
        if number > 1:
            yield Finding(
                kind=FindingKind.TWICE,
                about=f"{execution} {path}: {number} tasks of epoch {epoch} succeeded",
            )


def _too_many_runtimes_died(evidence: Evidence) -> Iterator[Finding]:
    """A runner has one run at a time, so each kill fails one attempt at most."""
    died = [
        f"{event.execution} {event.step}"
        for event in evidence.events
        if event.kind in {"step.failed", "step.retrying"}
        and event.data.get("code") in RUNTIME_CODES
    ]
    if len(died) > len(evidence.killed):
        yield Finding(
            kind=FindingKind.ENDED_WRONG,
            about=f"{len(died)} attempts failed with their runtime, but {len(evidence.killed)} were"
            f" killed: {', '.join(died)}",
        )
