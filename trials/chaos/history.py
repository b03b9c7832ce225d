"""Whether a run's events are a history: numbered without a gap, every claim once, one end. Pure."""

from collections.abc import Iterator

from executions.states import TERMINAL_EXECUTION, TERMINAL_STEP
from trials.chaos.case import Case
from trials.chaos.findings import Finding, Kind

RUN_ENDS = {f"execution.{state}" for state in TERMINAL_EXECUTION}
STEP_ENDS = {f"step.{state}" for state in TERMINAL_STEP}


def of_history(case: Case) -> Iterator[Finding]:
    """What is wrong with the events."""
    yield from _numbering(case)
    yield from _end(case)
    yield from _claims(case)


def _numbering(case: Case) -> Iterator[Finding]:
    numbers, last = [event.sequence for event in case.events], case.run.last_event
    if numbers != list(range(1, last + 1)):
        yield Finding(
            kind=Kind.EVENTS,
            about=f"{case.run.id} has the events {numbers}, and its last one is to be {last}",
        )


def _end(case: Case) -> Iterator[Finding]:
    ends = [event.kind for event in case.events if event.kind in RUN_ENDS]
    is_over = case.run.state in TERMINAL_EXECUTION
    if ends != ([f"execution.{case.run.state}"] if is_over else []):
        yield Finding(
            kind=Kind.EVENTS, about=f"{case.run.id} is {case.run.state} and ended by {ends}"
        )


def _claims(case: Case) -> Iterator[Finding]:
    """Each attempt is claimed once, and none after its step has ended."""
    claimed: set[tuple[str, int, int]] = set()
    ended: set[str] = set()
    for event in case.events:
        about = f"{case.run.id} {event.step}: event {event.sequence}, {event.kind}"
        if event.kind == "step.started":
            claim = (event.step, int(event.data["epoch"]), int(event.data["attempt"]))
            if claim in claimed:
                yield Finding(kind=Kind.TWICE, about=f"{about}, claims {claim[1:]} again")
            if event.step in ended:
                yield Finding(kind=Kind.AGAIN, about=f"{about}, after its end")
            claimed.add(claim)
        elif event.kind in STEP_ENDS:
            if event.step in ended:
                yield Finding(kind=Kind.AGAIN, about=f"{about}, ends it again")
            ended.add(event.step)
