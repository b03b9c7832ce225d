"""executions.semantics.attempt: the frame of a step, and its recovery."""

from decimal import Decimal
from typing import Any

import pytest

from executions.semantics.attempt import OVERDUE, Attempt
from executions.semantics.budgets import Budget
from executions.semantics.seeds import derive_seed
from executions.states import ExecutionState, StepState
from isolane.protocol import Run
from isolane.results import Code
from tests.unit.executions.semantics.attempt.runs import (
    BROKE,
    EXECUTION,
    SEED,
    done,
    failed,
    make_run,
    prepared,
    refused,
)


# --- what a step is given
def test_parameters_seed_key_time_and_variables() -> None:
    run = make_run(
        {},
        {"uses": "pay", "timeout": "5s", "with": {"n": "${steps.one.n}", "who": "${inputs.who}!"}},
        given={"who": "ann"},
        past={"one": {"n": 1}},
        variables={"v": 2},
    )
    assert prepared(Attempt(run, "two", number=3)) == Run(
        step="two",
        uses="pay",
        parameters={"n": 1, "who": "ann!"},
        variables={"v": 2},
        attempt=3,
        seed=derive_seed(SEED, 1),
        timeout_s=5.0,
        idempotency_key=f"{EXECUTION}:two",
    )


def test_the_key_is_the_same_for_every_attempt_and_may_be_chosen() -> None:
    run = make_run({"idempotency_key": "invoice-${inputs.id}"}, {}, given={"id": 7})
    keys = {prepared(Attempt(run, "one", number=number)).idempotency_key for number in (1, 2, 3)}
    assert keys == {"invoice-7"}


@pytest.mark.parametrize(
    ("value", "key"),
    [("a b", "a b"), (7, "7"), (True, "true"), ({"b": 1, "a": 2}, '{"a":2,"b":1}')],
)
def test_a_key_that_is_no_text_is_written_as_json(value: Any, key: str) -> None:
    run = make_run({"idempotency_key": "${inputs.id}"}, given={"id": value})
    assert prepared(Attempt(run, "one", number=1)).idempotency_key == key


@pytest.mark.parametrize("value", [None, "", "  ", "x" * 201])
def test_a_key_that_is_missing_or_too_long_stops_the_step(value: Any) -> None:
    run = make_run({"idempotency_key": "${inputs.id}"}, given={"id": value})
    result = refused(Attempt(run, "one", number=1))
    assert result.code is Code.POLICY_VIOLATION
    assert result.message.startswith(
        ("idempotency_key: it is empty", "idempotency_key: it has 201 characters")
    )


def test_what_a_step_came_to_reads_the_same_whether_it_was_stored_or_not() -> None:
    given = {"zebra": 1e23, "ant": {"y": 1, "b": -0.0}}
    key = {"idempotency_key": "${steps.one}"}
    before, after = make_run({}, key), make_run({}, key, past={"one": given})
    Attempt(before, "one", number=1).finish(done(given))
    keys = {prepared(Attempt(run, "two", number=1)).idempotency_key for run in (before, after)}
    assert keys == {'{"ant":{"b":0.0,"y":1},"zebra":100000000000000000000000}'}


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("${inputs.flag}", True),
        ("${inputs.none}", False),
        ("${inputs.empty}", False),
        ("${inputs.zero}", True),
    ],
)
def test_a_step_whose_condition_does_not_hold_is_skipped(when: str, runs: bool) -> None:
    run = make_run({"when": when}, {}, given={"flag": True, "empty": [], "zero": 0})
    attempt = Attempt(run, "one", number=1, version=4)
    assert (attempt.prepare() is not None) is runs
    if not runs:
        outcome = attempt.skipped()
        assert outcome.decided.state is StepState.SKIPPED
        assert (outcome.decided.next_step, outcome.decided.outcome) == ("two", None)
        assert (outcome.record.version, outcome.record.output) == (4, None)


def test_the_last_step_skipped_ends_the_run_with_its_outputs() -> None:
    run = make_run(
        {}, {"when": "${inputs.no}"}, past={"one": {"n": 1}}, outputs={"n": "${steps.one.n}"}
    )
    outcome = Attempt(run, "two", number=1).skipped()
    assert outcome.decided.outcome is ExecutionState.SUCCEEDED
    assert outcome.record.outputs == '{"n":1}'


@pytest.mark.parametrize("field", ["when", "with"])
def test_a_reference_that_cannot_be_evaluated_fails_the_step(field: str) -> None:
    text = "${inputs.list[?@ > `1`]}"
    run = make_run({field: {"x": text} if field == "with" else text}, given={"list": ["a"]})
    result = refused(Attempt(run, "one", number=2))
    assert (result.code, result.attempt) == (Code.POLICY_VIOLATION, 2)
    assert "cannot be evaluated" in result.message


def test_a_spent_budget_stops_the_step_before_it_runs() -> None:
    spent = Budget(run_limits={"tokens": Decimal(1)}, run_spent={"tokens": Decimal(1)})
    run = make_run({"on_failure": "continue"}, {}, budget=spent)
    attempt = Attempt(run, "one", number=1)
    result = refused(attempt)
    assert result.code is Code.BUDGET_EXCEEDED
    assert attempt.finish(result).decided.outcome is ExecutionState.FAILED


def test_a_step_that_is_skipped_spends_nothing() -> None:
    spent = Budget(run_limits={"tokens": Decimal(1)}, run_spent={"tokens": Decimal(1)})
    run = make_run({"when": "${inputs.no}"}, {}, budget=spent)
    assert Attempt(run, "one", number=1).prepare() is None


# --- recovery
RECOVERED = {
    "uses": "work",
    "when": "${inputs.no}",
    "with": {"a": 1},
    "on_failure": "recover",
    "recover": {
        "uses": "rescue",
        "with": {"why": "${error.code}: ${error.message} in ${error.step}"},
    },
}


def test_a_recovery_is_given_the_failure_and_a_key_of_its_own() -> None:
    frame = prepared(Attempt(make_run(RECOVERED, {}), "one", number=2, recovers_from=BROKE))
    assert frame.uses == "rescue"
    assert frame.parameters == {"why": "UNKNOWN_ERROR: broke in one"}
    assert frame.idempotency_key == f"{EXECUTION}:one:recover"


def test_a_recovered_step_has_succeeded_and_keeps_what_it_was_recovered_from() -> None:
    run = make_run(RECOVERED, {})
    attempt = Attempt(run, "one", number=2, recovers_from=BROKE)
    outcome = attempt.finish(done({"n": 2}))
    assert (outcome.decided.state, outcome.decided.next_step) == ("succeeded", "two")
    record = outcome.record
    assert (record.code, record.message, record.cause) == ("UNKNOWN_ERROR", "broke", "recovered")
    assert (record.run_code, record.output) == ("", '{"n":2}')
    assert run.memory.scope()["steps"] == {"one": {"n": 2}}


def test_a_recovery_that_fails_ends_the_run_with_the_original_code() -> None:
    attempt = Attempt(make_run(RECOVERED, {}), "one", number=2, recovers_from=BROKE)
    outcome = attempt.finish(failed(Code.RESOURCE_ERROR, "rescue broke"))
    assert outcome.decided.outcome is ExecutionState.FAILED
    record = outcome.record
    assert (record.run_code, record.run_message) == ("UNKNOWN_ERROR", "broke")
    assert record.cause == "recovery: RESOURCE_ERROR"


@pytest.mark.parametrize("code", [Code.CANCELLED, Code.TIMEOUT, Code.BUDGET_EXCEEDED])
def test_a_run_that_ends_for_another_reason_during_a_recovery_says_that_reason(code: Code) -> None:
    attempt = Attempt(make_run(RECOVERED, {}), "one", number=2, recovers_from=BROKE)
    outcome = attempt.finish(failed(code, "why"), run_is_over=code is Code.TIMEOUT)
    why = OVERDUE if code is Code.TIMEOUT else "why"
    assert (outcome.record.run_code, outcome.record.run_message) == (code, why)


def test_a_step_that_the_runs_own_time_ends_says_whose_time_it_was() -> None:
    ended = failed(Code.TIMEOUT, "the step was ended at its deadline")
    own = Attempt(make_run({}, {}), "one", number=1).finish(ended).record
    assert own.run_message == "the step was ended at its deadline"
    over = Attempt(make_run({}, {}), "one", number=1).finish(ended, run_is_over=True).record
    assert (over.message, over.run_message) == (OVERDUE, OVERDUE)
