"""executions.states, pair by pair; the expected pairs are written out here again.

They are those of the design and two more: a question that nobody answers fails its step, and the step's failure mode
may try it again, at once or after a long backoff.
"""

from itertools import product

import pytest

from executions.states import (
    EXECUTION_TRANSITIONS,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    TERMINAL_STEP,
    ExecutionState,
    StepState,
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


@pytest.mark.parametrize(("source", "target"), list(product(ExecutionState, repeat=2)))
def test_execution_pair(source: ExecutionState, target: ExecutionState) -> None:
    assert (target in EXECUTION_TRANSITIONS[source]) == (
        (source.value, target.value) in EXECUTION_PAIRS
    )


@pytest.mark.parametrize(("source", "target"), list(product(StepState, repeat=2)))
def test_step_pair(source: StepState, target: StepState) -> None:
    assert (target in STEP_TRANSITIONS[source]) == ((source.value, target.value) in STEP_PAIRS)


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
