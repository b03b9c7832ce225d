"""executions.states, pair by pair; the expected pairs are written out here again.

They are those of the design and two more: a question that nobody answers fails its step, and the step's failure mode
may try it again, at once or after a long backoff.
"""

from itertools import product

import pytest

from executions.states import (
    BEGUN_STEP,
    EXECUTION_TRANSITIONS,
    PLACED_EXECUTION,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    TERMINAL_STEP,
    TICKET_TRANSITIONS,
    UNPLACED_EXECUTION,
    ExecutionState,
    StepState,
    TicketState,
    sources,
)

EXECUTION_PAIRS = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "timed_out"),
    ("queued", "failed"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "timed_out"),
    ("running", "cancelled"),
    ("running", "suspended"),
    ("running", "waiting"),
    ("running", "queued"),
    ("suspended", "queued"),
    ("suspended", "waiting"),  # for the time of a retry, once nobody has answered
    ("suspended", "succeeded"),
    ("suspended", "failed"),
    ("suspended", "timed_out"),
    ("suspended", "cancelled"),
    ("waiting", "queued"),
    ("waiting", "succeeded"),
    ("waiting", "failed"),
    ("waiting", "timed_out"),
    ("waiting", "cancelled"),
}
STEP_PAIRS = {
    ("pending", "running"),
    ("pending", "skipped"),
    ("pending", "cancelled"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "skipped"),
    ("running", "cancelled"),
    ("running", "retrying"),
    ("running", "suspended"),
    ("running", "pending"),
    ("retrying", "running"),
    ("retrying", "pending"),
    ("retrying", "failed"),
    ("retrying", "cancelled"),
    ("suspended", "succeeded"),
    ("suspended", "retrying"),  # nobody has answered: it asks again, or its recovery node is next
    ("suspended", "failed"),
    ("suspended", "cancelled"),
}
TICKET_PAIRS = {
    ("waiting", "placed"),
    ("placed", "waiting"),
    ("placed", "parked"),
    ("parked", "waiting"),
}


@pytest.mark.parametrize(("source", "target"), list(product(ExecutionState, repeat=2)))
def test_execution_pair(source: ExecutionState, target: ExecutionState) -> None:
    assert (target in EXECUTION_TRANSITIONS[source]) == (
        (source.value, target.value) in EXECUTION_PAIRS
    )


@pytest.mark.parametrize(("source", "target"), list(product(StepState, repeat=2)))
def test_step_pair(source: StepState, target: StepState) -> None:
    assert (target in STEP_TRANSITIONS[source]) == ((source.value, target.value) in STEP_PAIRS)


@pytest.mark.parametrize(("source", "target"), list(product(TicketState, repeat=2)))
def test_ticket_pair(source: TicketState, target: TicketState) -> None:
    assert (target in TICKET_TRANSITIONS[source]) == ((source.value, target.value) in TICKET_PAIRS)


def test_a_ticket_has_no_terminal_state() -> None:
    """It is deleted."""
    assert all(TICKET_TRANSITIONS.values())


def test_every_state_of_a_run_is_with_a_slot_without_one_or_terminal() -> None:
    assert set(ExecutionState) == PLACED_EXECUTION | UNPLACED_EXECUTION | TERMINAL_EXECUTION
    assert {ExecutionState.QUEUED} == PLACED_EXECUTION & UNPLACED_EXECUTION


def test_a_step_is_to_begin_has_begun_or_has_ended() -> None:
    assert {StepState.PENDING} | BEGUN_STEP | TERMINAL_STEP == set(StepState)
    assert StepState.PENDING not in BEGUN_STEP
    assert not BEGUN_STEP & TERMINAL_STEP


def test_the_terminal_states_are_those_that_nothing_follows() -> None:
    ends = {state for state, targets in EXECUTION_TRANSITIONS.items() if not targets}
    assert ends == TERMINAL_EXECUTION == {"succeeded", "failed", "timed_out", "cancelled"}
    step_ends = {state for state, targets in STEP_TRANSITIONS.items() if not targets}
    assert step_ends == TERMINAL_STEP == {"succeeded", "failed", "skipped", "cancelled"}


def test_sources_are_plain_text_for_an_update() -> None:
    found = sources(EXECUTION_TRANSITIONS, ExecutionState.QUEUED)
    assert sorted(found) == ["running", "suspended", "waiting"]
    assert {type(state) for state in found} == {str}


def test_a_state_that_nothing_leads_to_has_no_sources() -> None:
    with pytest.raises(ValueError, match="pending"):
        sources({StepState.RUNNING: frozenset()}, StepState.PENDING)


def test_the_sources_of_several_targets_lead_to_each_of_them() -> None:
    both = sources(STEP_TRANSITIONS, StepState.SUCCEEDED, StepState.PENDING)
    assert both == ["running"]


def test_sources_may_be_narrowed() -> None:
    only = {ExecutionState.WAITING}
    assert sources(EXECUTION_TRANSITIONS, ExecutionState.QUEUED, only=only) == ["waiting"]


@pytest.mark.parametrize(
    "only", [{ExecutionState.QUEUED}, {ExecutionState.QUEUED, ExecutionState.RUNNING}, set()]
)
def test_but_not_to_others(only: set[ExecutionState]) -> None:
    with pytest.raises(ValueError, match="may become succeeded"):
        sources(EXECUTION_TRANSITIONS, ExecutionState.SUCCEEDED, only=only)
