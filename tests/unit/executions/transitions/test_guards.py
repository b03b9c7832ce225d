"""executions.transitions.guards: written from the tables, and refused where these say no."""

import pytest

from executions.states import (
    EXECUTION_TRANSITIONS,
    PLACED_EXECUTION,
    STEP_TRANSITIONS,
    TERMINAL_EXECUTION,
    ExecutionState,
    StepState,
)
from executions.transitions.guards import may_become, pair_is_allowed


def test_several_sources_are_an_array() -> None:
    guard = may_become(STEP_TRANSITIONS, StepState.RUNNING)
    assert guard == "= ANY(ARRAY['pending', 'retrying']::text[])"


def test_one_source_is_an_equation() -> None:
    assert (
        may_become(STEP_TRANSITIONS, StepState.SKIPPED, only={StepState.PENDING}) == "= 'pending'"
    )


def test_the_target_itself_may_be_let_through() -> None:
    guard = may_become(EXECUTION_TRANSITIONS, ExecutionState.RUNNING, or_is=True)
    assert guard == "= ANY(ARRAY['queued', 'running']::text[])"


def test_a_source_that_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="queued may become succeeded"):
        may_become(EXECUTION_TRANSITIONS, ExecutionState.SUCCEEDED, only={ExecutionState.QUEUED})


def test_pairs_are_those_of_the_table() -> None:
    guard = pair_is_allowed(
        EXECUTION_TRANSITIONS,
        "state",
        "outcome",
        targets=TERMINAL_EXECUTION,
        only=PLACED_EXECUTION,
    )
    left, right = guard.split(" IN ")
    assert left == "(state, outcome)"
    pairs = {tuple(pair.strip("'() ").split("', '")) for pair in right[1:-1].split("), (")}
    assert pairs == {
        ("queued", "failed"), ("queued", "timed_out"), ("queued", "cancelled"),
        ("running", "succeeded"), ("running", "failed"), ("running", "timed_out"), ("running", "cancelled"),
    }  # fmt: skip


def test_a_pair_of_the_same_state_only_if_that_is_said() -> None:
    same = {ExecutionState.QUEUED}
    guard = pair_is_allowed(EXECUTION_TRANSITIONS, "a", "b", targets=same, only=same, or_is=True)
    assert guard == "(a, b) IN (('queued', 'queued'))"
