"""Whether what steps told the judge is what the platform says of them, and as their guarantees promise. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from executions.blueprints.plan import Guarantee, PlannedStep
from trials.chaos.case import Case
from trials.chaos.findings import Finding, Kind
from trials.chaos.plan import SLEEP
from trials.chaos.rows import Told

NEVER_AGAIN = frozenset({Guarantee.AT_MOST_ONCE, Guarantee.BEST_EFFORT})


def of_hearing(case: Case) -> Iterator[Finding]:
    """What the judge objects to, step by step; of a sleep it hears nothing."""
    for planned in case.plan.steps:
        if planned.uses != SLEEP:
            yield from _claimed(case, planned)
            yield from _often(case, planned)
            yield from _one_at_a_time(case, planned)
            yield from _before_the_end(case, planned)
            yield from _is_done(case, planned)


def _claimed(case: Case, planned: PlannedStep) -> Iterator[Finding]:
    """Nothing begins that was not claimed; so there are no more starts than claims."""
    claims = case.claims(planned.path)
    for told in case.began(planned.path):
        if told.order not in claims:
            yield Finding(
                kind=Kind.UNKNOWN_START,
                about=f"{case.run.id} {planned.path}: epoch {told.epoch}, attempt {told.attempt}"
                f" began, and the claims are {sorted(claims)}",
            )


def _often(case: Case, planned: PlannedStep) -> Iterator[Finding]:
    """A loss uses no attempt: what may not run again has as many starts as attempts, and at_most_once has one."""
    began = case.began(planned.path)
    attempts = [told.attempt for told in began if told.role == "step"]
    repeats = len(attempts) > len(set(attempts)) and planned.guarantee in NEVER_AGAIN
    if repeats or len(set(attempts)) > planned.attempts:
        yield Finding(
            kind=Kind.TWICE,
            about=f"{case.run.id} {planned.path}, {planned.guarantee} with {planned.attempts}"
            f" attempts, began {_list(began)}",
        )


def _one_at_a_time(case: Case, planned: PlannedStep) -> Iterator[Finding]:
    """Who comes later finds everything over that came before."""
    ends = {told.order: told.at for told in case.done(planned.path)}
    for earlier, later in pairwise(case.began(planned.path)):
        last = max(earlier.at, ends.get(earlier.order, earlier.at))
        if later.at <= last:
            yield Finding(
                kind=Kind.TWICE,
                about=f"{case.run.id} {planned.path}: {later.order} began at {later.at:%T.%f}, and"
                f" {earlier.order} was at it until {last:%T.%f}",
            )


def _before_the_end(case: Case, planned: PlannedStep) -> Iterator[Finding]:
    """In whatever state it ended: who wrote that had ended the runtime, or its lease had had the time to."""
    row = case.steps[planned.path]
    for told in case.began(planned.path):
        if row.finished_at is not None and told.at > row.finished_at:
            yield Finding(
                kind=Kind.AGAIN,
                about=f"{case.run.id} {row.path}: {told.order} began at {told.at:%T.%f}, and the"
                f" step was {row.state} at {row.finished_at:%T.%f}",
            )


def _is_done(case: Case, planned: PlannedStep) -> Iterator[Finding]:
    row, effects = case.steps[planned.path], case.effects.get(planned.path, 0)
    about = f"{case.run.id} {row.path} ({planned.guarantee})"
    if effects > 1:
        yield Finding(kind=Kind.TWICE, about=f"{about} has {effects} effects, under other keys")
    if row.state != "succeeded":
        return
    role = "recover" if row.cause == "recovered" else "step"
    done = [told for told in case.done(row.path) if told.role == role]
    if (row.epoch, row.attempt) not in {told.order for told in done}:
        yield Finding(
            kind=Kind.MISSING,
            about=f"{about} succeeded in epoch {row.epoch}, attempt {row.attempt}, and was done in"
            f" {_list(done)}",
        )
    if planned.guarantee is Guarantee.EXACTLY_ONCE and role == "step" and not effects:
        yield Finding(kind=Kind.MISSING, about=f"{about} succeeded and has no effect")


def _list(told: Sequence[Told]) -> str:
    return ", ".join(f"({one.epoch}, {one.attempt}) as {one.role}" for one in told) or "none"
