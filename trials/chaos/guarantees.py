"""Compare what was observed of steps with their rows and their guarantees. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from executions.blueprints.plan import Guarantee, PlannedStep
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.plan import SLEEP
from trials.chaos.rows import Observation
from trials.chaos.run_evidence import RunEvidence

NOT_REPEATABLE = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.BEST_EFFORT})


def guarantee_findings(evidence: RunEvidence) -> Iterator[Finding]:
    """Yield what contradicts the guarantees, step by step; a sleep is not observed."""
    for planned in evidence.plan.steps:
        if planned.uses != SLEEP:
            yield from _claimed(evidence, planned)
            yield from _starts(evidence, planned)
            yield from _one_at_a_time(evidence, planned)
            yield from _no_start_after_end(evidence, planned)
            yield from _effects(evidence, planned)


def _claimed(evidence: RunEvidence, planned: PlannedStep) -> Iterator[Finding]:
    """Every start has a claim, so there are no more starts than claims."""
    claims = evidence.claims(planned.path)
    for start in evidence.starts_of(planned.path):
        if start.order not in claims:
            yield Finding(
                kind=FindingKind.UNKNOWN_START,
                about=f"{evidence.run.id} {planned.path}: epoch {start.epoch}, attempt {start.attempt}"
                f" began, and the claims are {sorted(claims)}",
            )


def _starts(evidence: RunEvidence, planned: PlannedStep) -> Iterator[Finding]:
    """A lost worker uses no attempt: a step that may not repeat has one start per attempt, at_most_once has one."""
    began = evidence.starts_of(planned.path)
    attempts = [start.attempt for start in began if start.role == "step"]
    repeats = len(attempts) > len(set(attempts)) and planned.guarantee in NOT_REPEATABLE
    if repeats or len(set(attempts)) > planned.attempts:
        yield Finding(
            kind=FindingKind.TWICE,
            about=f"{evidence.run.id} {planned.path}, {planned.guarantee} with {planned.attempts}"
            f" attempts, began {_list(began)}",
        )


def _one_at_a_time(evidence: RunEvidence, planned: PlannedStep) -> Iterator[Finding]:
    """An attempt starts after the end of the one before."""
    ends = {done.order: done.at for done in evidence.dones_of(planned.path)}
    for earlier, later in pairwise(evidence.starts_of(planned.path)):
        last = max(earlier.at, ends.get(earlier.order, earlier.at))
        if later.at <= last:
            yield Finding(
                kind=FindingKind.TWICE,
                about=f"{evidence.run.id} {planned.path}: {later.order} began at {later.at:%T.%f}, and"
                f" {earlier.order} was active until {last:%T.%f}",
            )


def _no_start_after_end(evidence: RunEvidence, planned: PlannedStep) -> Iterator[Finding]:
    """No attempt starts after the end of its step: its runtime was ended first, or its lease had run out."""
    row = evidence.steps[planned.path]
    for start in evidence.starts_of(planned.path):
        if row.finished_at is not None and start.at > row.finished_at:
            yield Finding(
                kind=FindingKind.AGAIN,
                about=f"{evidence.run.id} {row.path}: {start.order} began at {start.at:%T.%f}, and the"
                f" step was {row.state} at {row.finished_at:%T.%f}",
            )


def _effects(evidence: RunEvidence, planned: PlannedStep) -> Iterator[Finding]:
    row, effects = evidence.steps[planned.path], evidence.effects.get(planned.path, 0)
    about = f"{evidence.run.id} {row.path} ({planned.guarantee})"
    if effects > 1:
        yield Finding(
            kind=FindingKind.TWICE, about=f"{about} has {effects} effects, under different keys"
        )
    if row.state != "succeeded":
        return
    role = "recover" if row.cause == "recovered" else "step"
    done = [one for one in evidence.dones_of(row.path) if one.role == role]
    if (row.epoch, row.attempt) not in {one.order for one in done}:
        yield Finding(
            kind=FindingKind.MISSING,
            about=f"{about} succeeded in epoch {row.epoch}, attempt {row.attempt}, and was done in"
            f" {_list(done)}",
        )
    if planned.guarantee is Guarantee.EXACTLY_ONCE and role == "step" and not effects:
        yield Finding(kind=FindingKind.MISSING, about=f"{about} succeeded and has no effect")


def _list(observations: Sequence[Observation]) -> str:
    return (
        ", ".join(f"({one.epoch}, {one.attempt}) as {one.role}" for one in observations) or "none"
    )
