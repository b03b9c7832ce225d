"""Check the events of a run: numbered without gaps, every claim once, one end. Pure."""

from collections.abc import Iterator

from executions.states import TERMINAL_EXECUTION, TERMINAL_STEP
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.run_evidence import RunEvidence

RUN_ENDS = {f"execution.{state}" for state in TERMINAL_EXECUTION}
STEP_ENDS = {f"step.{state}" for state in TERMINAL_STEP}


def history_findings(evidence: RunEvidence) -> Iterator[Finding]:
    """Yield what is wrong with the events."""
    yield from _numbering(evidence)
    yield from _end(evidence)
    yield from _claims(evidence)


def _numbering(evidence: RunEvidence) -> Iterator[Finding]:
    numbers, last = [event.sequence for event in evidence.events], evidence.run.last_event
    if numbers != list(range(1, last + 1)):
        yield Finding(
            kind=FindingKind.EVENTS,
            about=f"{evidence.run.id} has the events {numbers}, and its last one should be {last}",
        )


def _end(evidence: RunEvidence) -> Iterator[Finding]:
    ends = [event.kind for event in evidence.events if event.kind in RUN_ENDS]
    is_over = evidence.run.state in TERMINAL_EXECUTION
    if ends != ([f"execution.{evidence.run.state}"] if is_over else []):
        yield Finding(
            kind=FindingKind.EVENTS,
            about=f"{evidence.run.id} is {evidence.run.state} with the end events {ends}",
        )


def _claims(evidence: RunEvidence) -> Iterator[Finding]:
    """Each attempt is claimed once, and none after the end of its step."""
    claimed: set[tuple[str, int, int]] = set()
    ended: set[str] = set()
    for event in evidence.events:
        about = f"{evidence.run.id} {event.step}: event {event.sequence}, {event.kind}"
        if event.kind == "step.started":
            claim = (event.step, int(event.data["epoch"]), int(event.data["attempt"]))
            if claim in claimed:
                yield Finding(kind=FindingKind.TWICE, about=f"{about}, claims {claim[1:]} again")
            if event.step in ended:
                yield Finding(kind=FindingKind.AGAIN, about=f"{about}, after its end")
            claimed.add(claim)
        elif event.kind in STEP_ENDS:
            if event.step in ended:
                yield Finding(kind=FindingKind.AGAIN, about=f"{about}, ends it again")
            ended.add(event.step)
