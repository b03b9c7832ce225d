"""executions.semantics.attempt: finished results, replays, and the run's outputs."""

import json
from decimal import Decimal
from typing import Any

import pytest

from executions.semantics import memory as memory_module
from executions.semantics.attempt import Attempt
from executions.semantics.budgets import Budget
from executions.semantics.decisions import after_skip
from executions.states import ExecutionState, StepState
from isolane.protocol import Cost, Log
from isolane.results import Code
from tests.unit.executions.semantics.attempt.runs import done, failed, make_run, output_of


# --- what a result comes to
def test_a_success_is_remembered_and_written() -> None:
    run = make_run({"with": {"a": "${inputs.a}"}}, {}, given={"a": 1})
    attempt = Attempt(run, "one", number=1, version=3)
    attempt.prepare()
    outcome = attempt.finish(done({"n": 1}, variables={"v": 1}))
    record = outcome.record
    assert (record.path, record.attempt, record.version) == ("one", 1, 3)
    assert (record.inputs, record.output, record.variables) == ('{"a":1}', '{"n":1}', '{"v":1}')
    assert (record.sealed_output, record.sealed_variables, record.code) == (None, None, "")
    assert run.memory.scope()["steps"] == {"one": {"n": 1}}
    assert run.memory.scope()["vars"] == {"v": 1}


def test_a_failure_leaves_the_memory_as_it_was() -> None:
    run = make_run({}, {}, variables={"v": 1})
    outcome = Attempt(run, "one", number=1).finish(failed(cause="KeyError"))
    record = outcome.record
    assert (record.code, record.message, record.cause) == ("UNKNOWN_ERROR", "broke", "KeyError")
    assert (record.run_code, record.run_message) == ("UNKNOWN_ERROR", "broke")
    assert (record.output, record.variables) == (None, None)
    assert run.memory.scope()["steps"] == {}


def test_a_failure_that_does_not_end_the_run_is_not_the_runs() -> None:
    outcome = Attempt(make_run({"on_failure": "continue"}, {}), "one", number=1).finish(failed())
    assert (outcome.record.code, outcome.record.run_code) == ("UNKNOWN_ERROR", "")


def test_costs_and_lines_are_written_with_the_attempt_also_when_it_fails() -> None:
    run = make_run({}, {}, budget=Budget(run_spent={"tokens": Decimal(1)}))
    output = output_of(
        Log(step="one", level="info", message="hi"), Cost(step="one", kind="tokens", amount=2)
    )
    record = Attempt(run, "one", number=1).finish(failed(), output).record
    assert [line.message for line in record.lines] == ["hi"]
    assert record.costs == {"tokens": 2}
    assert record.run_costs == {"tokens": 3}


def test_too_many_kinds_of_cost_fail_the_step_whatever_it_returned() -> None:
    output = output_of(*(Cost(step="one", kind=f"k{number}", amount=1) for number in range(21)))
    run = make_run({}, {})
    outcome = Attempt(run, "one", number=1).finish(done(1), output)
    assert outcome.result.code is Code.POLICY_VIOLATION
    assert "kinds of cost" in outcome.record.message
    assert run.memory.scope()["steps"] == {}


def test_an_attempt_that_was_cut_is_not_billed() -> None:
    run = make_run({}, {})
    decided = after_skip(run.plan, "one")
    record = Attempt(run, "one", number=1).interrupted(decided).record
    assert (record.code, record.unbilled) == (Code.OUTCOME_UNKNOWN, True)
    assert not Attempt(run, "one", number=1).finish(failed()).record.unbilled


def test_an_output_that_does_not_fit_beside_the_others_fails_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_module, "MAX_MEMORY_BYTES", 50)
    run = make_run({}, {}, past={"one": "x" * 30})
    outcome = Attempt(run, "two", number=1).finish(done("x" * 30, "two"))
    assert outcome.result.code is Code.OUTPUT_TOO_LARGE
    assert outcome.record.output is None
    assert outcome.decided.outcome is ExecutionState.FAILED


def test_variables_that_are_too_large_together_fail_the_step_that_sets_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_module, "MAX_VARIABLES_BYTES", 20)
    run = make_run({}, {})
    first = Attempt(run, "one", number=1).finish(done(None, variables={"v": "y" * 10}))
    assert first.result.code is None
    second = Attempt(run, "two", number=1).finish(done(None, "two", variables={"w": "y" * 10}))
    assert second.result.code is Code.OUTPUT_TOO_LARGE
    assert "variables" in second.record.message
    assert run.memory.variables == {"v": "y" * 10}


# --- replay
@pytest.mark.parametrize(
    ("guarantee", "original", "code"),
    [
        ("deterministic", {"one": {"n": 1}}, None),
        ("deterministic", {"one": {"n": 2}}, Code.POLICY_VIOLATION),
        ("deterministic", {}, None),  # the original never came so far
        ("deterministic", None, None),  # no replay
        ("at_least_once", {"one": {"n": 2}}, None),
    ],
)
def test_a_deterministic_step_must_come_to_the_same_when_replayed(
    guarantee: str, original: dict[str, Any] | None, code: Code | None
) -> None:
    run = make_run({"guarantee": guarantee}, {}, original=original)
    outcome = Attempt(run, "one", number=1).finish(done({"n": 1}))
    assert outcome.result.code is code
    if code:
        assert "differs" in outcome.record.message


def test_an_output_is_compared_with_the_original_as_it_is_stored() -> None:
    same = {"n": 10**23}
    run = make_run({"guarantee": "deterministic"}, {}, original={"one": same})
    assert Attempt(run, "one", number=1).finish(done({"n": 1e23})).result.code is None


# --- the run's outputs
OUTPUTS = {"first": "${steps.one.n}", "all": ["${steps.two}", "${vars.v}"]}


def test_at_the_end_the_runs_outputs_are_resolved() -> None:
    run = make_run({}, {}, past={"one": {"n": 1}}, outputs=OUTPUTS)
    outcome = Attempt(run, "two", number=1).finish(done(2, "two", variables={"v": 3}))
    assert json.loads(outcome.record.outputs or "") == {"first": 1, "all": [2, 3]}


def test_not_before_the_end_nor_for_a_run_that_fails() -> None:
    run = make_run({}, {}, outputs=OUTPUTS)
    assert Attempt(run, "one", number=1).finish(failed()).record.outputs is None
    assert Attempt(run, "one", number=1).finish(done(1)).record.outputs is None


def test_a_pause_at_the_end_resolves_them_before_the_wake_up() -> None:
    run = make_run({}, outputs={"n": "${steps.one}"})
    outcome = Attempt(run, "one", number=1).finish(done(1, pause_s=5))
    assert (outcome.decided.outcome, outcome.decided.wake_s) == (None, 5)
    assert outcome.record.outputs == '{"n":1}'


@pytest.mark.parametrize("pause_s", [0.0, 5.0])
def test_outputs_that_cannot_be_resolved_fail_the_run(pause_s: float) -> None:
    run = make_run({"on_failure": "continue"}, outputs={"n": "${steps.one[?@ > `1`]}"})
    outcome = Attempt(run, "one", number=1).finish(done(["a"], pause_s=pause_s))
    assert outcome.decided.outcome is ExecutionState.FAILED
    assert (outcome.decided.state, outcome.decided.wake_s) == (StepState.SUCCEEDED, 0)
    assert (outcome.record.run_code, outcome.record.code) == (Code.POLICY_VIOLATION, "")
    assert outcome.record.run_message.startswith("outputs.n: ")
