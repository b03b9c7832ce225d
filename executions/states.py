"""The states of executions, steps and tickets, and which may follow which. Pure data.

Only `executions.transitions` writes states; each transition is one guarded UPDATE.
"""

from collections.abc import Mapping
from typing import TypeVar

from django.db.models import TextChoices


class ExecutionState(TextChoices):
    """Where a run stands."""

    QUEUED = "queued"  # waits for a slot
    RUNNING = "running"  # holds a slot; its first step was claimed
    SUSPENDED = "suspended"  # a person is asked
    WAITING = "waiting"  # a long backoff or a sleep
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class StepState(TextChoices):
    """Where a step stands; its row is its checkpoint."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"  # failed, will be tried again
    SUSPENDED = "suspended"  # a person is asked
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class TicketState(TextChoices):
    """Where an execution stands in the queue; it has no ticket once it is terminal."""

    WAITING = "waiting"  # for a slot
    PLACED = "placed"  # holds a slot on a worker
    PARKED = "parked"  # waits for a person or a time, without a slot


_E, _S = ExecutionState, StepState
TERMINAL_EXECUTION = frozenset({_E.SUCCEEDED, _E.FAILED, _E.TIMED_OUT, _E.CANCELLED})
TERMINAL_STEP = frozenset({_S.SUCCEEDED, _S.FAILED, _S.SKIPPED, _S.CANCELLED})
CLAIMABLE_STEP = frozenset({_S.PENDING, _S.RETRYING})

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

State = TypeVar("State", ExecutionState, StepState)


def sources(table: Mapping[State, frozenset[State]], target: State) -> list[str]:
    """The states from which the target may be reached, as an UPDATE's guard needs them."""
    found = [source.value for source, targets in table.items() if target in targets]
    if not found:
        raise ValueError(f"no state may become {target}")
    return found
