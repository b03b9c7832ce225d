"""The states of executions, steps and tickets, and which may follow which. Pure data.

Only `executions.transitions` writes states; each transition is one guarded UPDATE, and its guard is derived from the
tables below. Rows come with a submission. A ticket is deleted when its run ends, or with its tenant, whose waiting runs
nobody places any more (`executions.services.offboarding`).
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from django.db.models import TextChoices


class ExecutionState(TextChoices):
    """The states of a run."""

    QUEUED = "queued"  # waits for a slot
    RUNNING = "running"  # holds a slot; its first step was claimed
    SUSPENDED = "suspended"  # a person is asked
    WAITING = "waiting"  # a long backoff or a sleep
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class StepState(TextChoices):
    """The states of a step, whose row is its checkpoint."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"  # failed, will be tried again
    SUSPENDED = "suspended"  # a person is asked
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class TicketState(TextChoices):
    """The states of a run in the queue; a terminal one has no ticket."""

    WAITING = "waiting"  # for a slot
    PLACED = "placed"  # holds a slot on a worker
    PARKED = "parked"  # waits for a person or a time, without a slot


_E, _S, _T = ExecutionState, StepState, TicketState
TERMINAL_EXECUTION = frozenset({_E.SUCCEEDED, _E.FAILED, _E.TIMED_OUT, _E.CANCELLED})
TERMINAL_STEP = frozenset({_S.SUCCEEDED, _S.FAILED, _S.SKIPPED, _S.CANCELLED})
BEGUN_STEP = frozenset({_S.RUNNING, _S.RETRYING, _S.SUSPENDED})  # and not ended
# Of a run whose ticket is placed; it stays queued until its first step is claimed.
PLACED_EXECUTION = frozenset({_E.QUEUED, _E.RUNNING})
# Of a run whose ticket waits or is parked.
UNPLACED_EXECUTION = frozenset({_E.QUEUED, _E.SUSPENDED, _E.WAITING})

EXECUTION_TRANSITIONS: Mapping[ExecutionState, frozenset[ExecutionState]] = {
    _E.QUEUED: frozenset({_E.RUNNING, _E.CANCELLED, _E.TIMED_OUT, _E.FAILED}),
    _E.RUNNING: TERMINAL_EXECUTION | {_E.SUSPENDED, _E.WAITING, _E.QUEUED},
    _E.SUSPENDED: TERMINAL_EXECUTION | {_E.QUEUED, _E.WAITING},
    _E.WAITING: TERMINAL_EXECUTION | {_E.QUEUED},
    **{state: frozenset() for state in TERMINAL_EXECUTION},
}
STEP_TRANSITIONS: Mapping[StepState, frozenset[StepState]] = {
    _S.PENDING: frozenset({_S.RUNNING, _S.SKIPPED, _S.CANCELLED}),
    _S.RUNNING: TERMINAL_STEP | {_S.RETRYING, _S.SUSPENDED, _S.PENDING},
    _S.RETRYING: frozenset({_S.RUNNING, _S.PENDING, _S.FAILED, _S.CANCELLED}),
    _S.SUSPENDED: frozenset({_S.SUCCEEDED, _S.RETRYING, _S.FAILED, _S.CANCELLED}),
    **{state: frozenset() for state in TERMINAL_STEP},
}
TICKET_TRANSITIONS: Mapping[TicketState, frozenset[TicketState]] = {
    _T.WAITING: frozenset({_T.PLACED}),  # admission
    _T.PLACED: frozenset({_T.WAITING, _T.PARKED}),  # the placement ends, the run does not
    _T.PARKED: frozenset({_T.WAITING}),  # woken, or answered
}

State = TypeVar("State", ExecutionState, StepState, TicketState)


def sources(
    table: Mapping[State, frozenset[State]],
    *targets: State,
    only: Collection[State] | None = None,
) -> list[str]:
    """Return the states from which every target may be reached, as an UPDATE's guard needs them.

    `only`: those of them that are meant; each must be one.
    """
    found = [source for source, reached in table.items() if reached.issuperset(targets)]
    wanted = found if only is None else [source for source in table if source in only]
    if not wanted or not set(wanted) <= set(found):
        named = "not every one of " + ", ".join(sorted(only)) if only else "no state"
        raise ValueError(f"{named} may become {' and '.join(sorted(targets))}")
    return [source.value for source in wanted]
