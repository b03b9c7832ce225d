"""executions.semantics.attempts: what a step is given, and what its result comes to."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from executions.blueprint.plan import plan
from executions.sealing import seal, unseal
from executions.semantics import memory as memory_module
from executions.semantics.attempts import OVERDUE, Attempt, Failure
from executions.semantics.budgets import Budget
from executions.semantics.decisions import after_skip
from executions.semantics.masking import MASK
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.semantics.replies import Reply
from executions.semantics.resumable import Resumable
from executions.semantics.said import Said
from executions.semantics.seeds import derive_seed
from executions.states import ExecutionState, StepState
from isolane.protocol import Cost, Log, Run
from isolane.results import Code, StepResult

EXECUTION = UUID(int=7)
SEED = 42
BROKE = Failure(code="UNKNOWN_ERROR", message="broke")
SENSITIVE = {"properties": {"password": {"type": "string", "sensitive": True}}}


def make_run(
    *steps: dict[str, Any],
    given: dict[str, Any] | None = None,
    past: dict[str, Any] | None = None,
    variables: dict[str, Any] | None = None,
    original: dict[str, Any] | None = None,
    budget: Budget | None = None,
    **fields: Any,
) -> Resumable:
    """A run of the steps one, two, …, of which some have succeeded in the past."""
    names = ("one", "two", "three")
    numbered = [
        {"key": key, "uses": "work", **step} for key, step in zip(names, steps, strict=False)
    ]
    flow = plan({"name": "flow", "steps": numbered, **fields})
    memory = ExecutionMemory(
        flow,
        metadata=Metadata(
            tenant_id=1, execution_id=EXECUTION, blueprint="flow", blueprint_version=1
        ),
        inputs=given or {},
        outputs=past or {},
        variables=variables or {},
    )
    return Resumable(
        plan=flow,
        memory=memory,
        budget=budget or Budget(),
        seed=SEED,
        isolation="shared",
        seal=partial(seal, EXECUTION),
        original=original,
    )


def prepared(attempt: Attempt) -> Run:
    frame = attempt.prepare()
    assert isinstance(frame, Run)
    return frame


def refused(attempt: Attempt) -> StepResult:
    result = attempt.prepare()
    assert isinstance(result, StepResult)
    return result


def done(output: Any = None, path: str = "one", **fields: Any) -> StepResult:
    return StepResult.succeeded(step=path, attempt=1, output=output, **fields)


def failed(code: Code = Code.UNKNOWN_ERROR, message: str = "broke", **fields: Any) -> StepResult:
    return StepResult.failed(step="one", attempt=1, code=code, message=message, **fields)


def said(*frames: Log | Cost) -> Said:
    found = Said(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    for frame in frames:
        found.hear(frame)
    return found


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
    assert result.message.startswith("idempotency_key: it comes to ")


def test_what_a_step_came_to_reads_the_same_whether_it_was_stored_or_not() -> None:
    given = {"zebra": 1e23, "ant": {"y": 1, "b": -0.0}}
    key = {"idempotency_key": "${steps.one}"}
    before, after = make_run({}, key), make_run({}, key, past={"one": given})
    Attempt(before, "one", number=1).concluded(done(given))
    keys = {prepared(Attempt(run, "two", number=1)).idempotency_key for run in (before, after)}
    assert keys == {'{"ant":{"b":0.0,"y":1},"zebra":100000000000000000000000}'}


def test_an_output_is_compared_with_the_original_as_it_is_stored() -> None:
    same = {"n": 10**23}
    run = make_run({"guarantee": "deterministic"}, {}, original={"one": same})
    assert Attempt(run, "one", number=1).concluded(done({"n": 1e23})).result.code is None


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
        concluded = attempt.skipped()
        assert concluded.decided.state is StepState.SKIPPED
        assert (concluded.decided.next_step, concluded.decided.outcome) == ("two", None)
        assert (concluded.record.version, concluded.record.output) == (4, None)


def test_the_last_step_skipped_ends_the_run_with_its_outputs() -> None:
    run = make_run(
        {}, {"when": "${inputs.no}"}, past={"one": {"n": 1}}, outputs={"n": "${steps.one.n}"}
    )
    concluded = Attempt(run, "two", number=1).skipped()
    assert concluded.decided.outcome is ExecutionState.SUCCEEDED
    assert concluded.record.outputs == '{"n":1}'


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
    assert attempt.concluded(result).decided.outcome is ExecutionState.FAILED


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
    concluded = attempt.concluded(done({"n": 2}))
    assert (concluded.decided.state, concluded.decided.next_step) == ("succeeded", "two")
    record = concluded.record
    assert (record.code, record.message, record.cause) == ("UNKNOWN_ERROR", "broke", "recovered")
    assert (record.run_code, record.output) == ("", '{"n":2}')
    assert run.memory.scope()["steps"] == {"one": {"n": 2}}


def test_a_recovery_that_fails_ends_the_run_with_the_original_code() -> None:
    attempt = Attempt(make_run(RECOVERED, {}), "one", number=2, recovers_from=BROKE)
    concluded = attempt.concluded(failed(Code.RESOURCE_ERROR, "rescue broke"))
    assert concluded.decided.outcome is ExecutionState.FAILED
    record = concluded.record
    assert (record.run_code, record.run_message) == ("UNKNOWN_ERROR", "broke")
    assert record.cause == "recovery: RESOURCE_ERROR"


@pytest.mark.parametrize("code", [Code.CANCELLED, Code.TIMEOUT, Code.BUDGET_EXCEEDED])
def test_a_run_that_ends_for_another_reason_during_a_recovery_says_that_reason(code: Code) -> None:
    attempt = Attempt(make_run(RECOVERED, {}), "one", number=2, recovers_from=BROKE)
    concluded = attempt.concluded(failed(code, "why"), run_is_over=code is Code.TIMEOUT)
    why = OVERDUE if code is Code.TIMEOUT else "why"
    assert (concluded.record.run_code, concluded.record.run_message) == (code, why)


def test_a_step_that_the_runs_own_time_ends_says_whose_time_it_was() -> None:
    ended = failed(Code.TIMEOUT, "the step was ended at its deadline")
    own = Attempt(make_run({}, {}), "one", number=1).concluded(ended).record
    assert own.run_message == "the step was ended at its deadline"
    over = Attempt(make_run({}, {}), "one", number=1).concluded(ended, run_is_over=True).record
    assert (over.message, over.run_message) == (OVERDUE, OVERDUE)


# --- what a result comes to
def test_a_success_is_remembered_and_written() -> None:
    run = make_run({"with": {"a": "${inputs.a}"}}, {}, given={"a": 1})
    attempt = Attempt(run, "one", number=1, version=3)
    attempt.prepare()
    concluded = attempt.concluded(done({"n": 1}, variables={"v": 1}))
    record = concluded.record
    assert (record.path, record.attempt, record.version) == ("one", 1, 3)
    assert (record.inputs, record.output, record.variables) == ('{"a":1}', '{"n":1}', '{"v":1}')
    assert (record.sealed_output, record.sealed_variables, record.code) == (None, None, "")
    assert run.memory.scope()["steps"] == {"one": {"n": 1}}
    assert run.memory.scope()["vars"] == {"v": 1}


def test_a_failure_leaves_the_memory_as_it_was() -> None:
    run = make_run({}, {}, variables={"v": 1})
    concluded = Attempt(run, "one", number=1).concluded(failed(cause="KeyError"))
    record = concluded.record
    assert (record.code, record.message, record.cause) == ("UNKNOWN_ERROR", "broke", "KeyError")
    assert (record.run_code, record.run_message) == ("UNKNOWN_ERROR", "broke")
    assert (record.output, record.variables) == (None, None)
    assert run.memory.scope()["steps"] == {}


def test_a_failure_that_does_not_end_the_run_is_not_the_runs() -> None:
    concluded = Attempt(make_run({"on_failure": "continue"}, {}), "one", number=1).concluded(
        failed()
    )
    assert (concluded.record.code, concluded.record.run_code) == ("UNKNOWN_ERROR", "")


def test_costs_and_lines_are_written_with_the_attempt_also_when_it_fails() -> None:
    run = make_run({}, {}, budget=Budget(run_spent={"tokens": Decimal(1)}))
    heard = said(
        Log(step="one", level="info", message="hi"), Cost(step="one", kind="tokens", amount=2)
    )
    record = Attempt(run, "one", number=1).concluded(failed(), heard).record
    assert [line.message for line in record.lines] == ["hi"]
    assert record.costs == {"tokens": 2}
    assert record.run_costs == {"tokens": 3}


def test_too_many_kinds_of_cost_fail_the_step_whatever_it_returned() -> None:
    heard = said(*(Cost(step="one", kind=f"k{number}", amount=1) for number in range(21)))
    run = make_run({}, {})
    concluded = Attempt(run, "one", number=1).concluded(done(1), heard)
    assert concluded.result.code is Code.POLICY_VIOLATION
    assert "kinds of cost" in concluded.record.message
    assert run.memory.scope()["steps"] == {}


def test_an_output_that_does_not_fit_beside_the_others_fails_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_module, "MAX_MEMORY_BYTES", 50)
    run = make_run({}, {}, past={"one": "x" * 30})
    concluded = Attempt(run, "two", number=1).concluded(done("x" * 30, "two"))
    assert concluded.result.code is Code.OUTPUT_TOO_LARGE
    assert concluded.record.output is None
    assert concluded.decided.outcome is ExecutionState.FAILED


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
    concluded = Attempt(run, "one", number=1).concluded(done({"n": 1}))
    assert concluded.result.code is code
    if code:
        assert "differs" in concluded.record.message


# --- the run's outputs
OUTPUTS = {"first": "${steps.one.n}", "all": ["${steps.two}", "${vars.v}"]}


def test_at_the_end_the_runs_outputs_are_resolved() -> None:
    run = make_run({}, {}, past={"one": {"n": 1}}, outputs=OUTPUTS)
    concluded = Attempt(run, "two", number=1).concluded(done(2, "two", variables={"v": 3}))
    assert json.loads(concluded.record.outputs or "") == {"first": 1, "all": [2, 3]}


def test_not_before_the_end_nor_for_a_run_that_fails() -> None:
    run = make_run({}, {}, outputs=OUTPUTS)
    assert Attempt(run, "one", number=1).concluded(failed()).record.outputs is None
    assert Attempt(run, "one", number=1).concluded(done(1)).record.outputs is None


def test_a_pause_at_the_end_resolves_them_before_the_wake_up() -> None:
    run = make_run({}, outputs={"n": "${steps.one}"})
    concluded = Attempt(run, "one", number=1).concluded(done(1, pause_s=5))
    assert (concluded.decided.outcome, concluded.decided.wake_s) == (None, 5)
    assert concluded.record.outputs == '{"n":1}'


@pytest.mark.parametrize("pause_s", [0.0, 5.0])
def test_outputs_that_cannot_be_resolved_fail_the_run(pause_s: float) -> None:
    run = make_run({"on_failure": "continue"}, outputs={"n": "${steps.one[?@ > `1`]}"})
    concluded = Attempt(run, "one", number=1).concluded(done(["a"], pause_s=pause_s))
    assert concluded.decided.outcome is ExecutionState.FAILED
    assert (concluded.decided.state, concluded.decided.wake_s) == (StepState.SUCCEEDED, 0)
    assert (concluded.record.run_code, concluded.record.code) == (Code.POLICY_VIOLATION, "")
    assert concluded.record.run_message.startswith("outputs.n: ")


# --- what is sensitive
def test_inputs_are_shown_without_what_is_sensitive() -> None:
    parameters = {"p": "${inputs.password}", "both": "${inputs.user}:${inputs.password}", "n": 1}
    parameters["size"] = "${length(inputs.password)}"
    run = make_run(
        {"with": parameters}, {}, given={"password": "hunter2", "user": "ann"}, inputs=SENSITIVE
    )
    attempt = Attempt(run, "one", number=1)
    assert prepared(attempt).parameters == {
        "p": "hunter2", "both": "ann:hunter2", "n": 1, "size": 7,
    }  # fmt: skip
    record = attempt.concluded(done(1)).record
    assert json.loads(record.inputs or "") == {"p": MASK, "both": "ann:***", "n": 1, "size": 3}


def test_what_cannot_be_shown_masked_is_masked_as_a_whole() -> None:
    run = make_run(
        {"with": {"x": "${inputs.password.list[?@ > `1`]}"}},
        given={"password": {"list": [1, 2]}},
        inputs=SENSITIVE,
    )
    attempt = Attempt(run, "one", number=1)
    assert prepared(attempt).parameters == {"x": [2]}
    shown = json.loads(attempt.concluded(done(1)).record.inputs or "")
    assert shown["x"] in (MASK, None)


def test_a_field_of_what_is_sensitive_as_a_whole_is_masked_and_not_missing() -> None:
    run = make_run(
        {"sensitive": True},
        {"with": {"list": ["${steps.one.pin}", {"none": "${steps.one.none}", "n": 1}]}},
        outputs={"pin": "${steps.one.pin}", "none": "${steps.one.none}"},
    )
    Attempt(run, "one", number=1).concluded(done({"pin": "9917", "none": None}))
    last = Attempt(run, "two", number=1)
    assert prepared(last).parameters == {"list": ["9917", {"none": None, "n": 1}]}
    record = last.concluded(done(None, "two")).record
    assert json.loads(record.inputs or "") == {"list": [MASK, {"none": None, "n": 1}]}
    assert json.loads(record.outputs or "") == {"pin": MASK, "none": None}


def test_a_sensitive_output_is_sealed_and_masked() -> None:
    run = make_run({"sensitive": ["token", "v"]}, {}, outputs={"t": "${steps.one.token}"})
    record = (
        Attempt(run, "one", number=1)
        .concluded(done({"token": "t0ken", "n": 1}, variables={"v": "v4lue", "w": 2}))
        .record
    )
    assert record.output == '{"n":1,"token":"***"}'
    assert unseal(EXECUTION, record.sealed_output or b"") == {"token": "t0ken", "n": 1}
    assert json.loads(record.variables or "") == {"v": MASK, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": "v4lue"}
    end = Attempt(run, "two", number=1).concluded(done(1, "two")).record
    assert end.outputs == '{"t":"***"}'


def test_outputs_made_of_what_is_sensitive_are_masked_and_do_not_fail_the_run() -> None:
    run = make_run(
        {"sensitive": ["numbers"]}, outputs={"total": "${sum(steps.one.numbers)}", "n": 1}
    )
    concluded = Attempt(run, "one", number=1).concluded(done({"numbers": [1, 2]}))
    assert concluded.decided.outcome is ExecutionState.SUCCEEDED
    assert concluded.record.outputs == '{"total":"***","n":1}'


def test_what_a_sensitive_step_says_is_masked_by_what_it_returned() -> None:
    run = make_run({"sensitive": True}, {})
    heard = said(Log(step="one", level="info", message="got t0ken"))
    record = Attempt(run, "one", number=1).concluded(done({"token": "t0ken"}), heard).record
    assert [line.message for line in record.lines] == ["got ***"]
    assert record.output == '"***"'


def test_messages_and_causes_are_masked() -> None:
    run = make_run({}, {}, given={"password": "hunter2"}, inputs=SENSITIVE)
    record = (
        Attempt(run, "one", number=1)
        .concluded(failed(message="no hunter2", cause="hunter2"))
        .record
    )
    assert (record.message, record.cause, record.run_message) == ("no ***", MASK, "no ***")


def hiding(*steps: dict[str, Any], **fields: Any) -> Resumable:
    """A run that was given a password."""
    return make_run(*steps, given={"password": "hunter2", "n": 4711}, inputs=SENSITIVE, **fields)


def test_what_a_step_returns_of_a_sensitive_input_is_sealed_though_nobody_marked_it() -> None:
    run = hiding({}, {"with": {"said": "${steps.one.said}"}})
    output = {"said": "it is hunter2", "hunter2": [1], "n": 4711}
    record = Attempt(run, "one", number=1).concluded(done(output)).record
    assert json.loads(record.output or "") == {"said": "it is ***", MASK: [1], "n": 4711}
    assert unseal(EXECUTION, record.sealed_output or b"") == output
    later = Attempt(run, "two", number=1)
    assert prepared(later).parameters == {"said": "it is hunter2"}
    assert later.concluded(done(1, "two")).record.inputs == '{"said":"it is ***"}'


def test_what_a_step_sets_of_it_is_sealed_variable_by_variable() -> None:
    run = hiding({}, {})
    variables = {"v": {"deep": "hunter2"}, "w": 2}
    record = Attempt(run, "one", number=1).concluded(done(None, variables=variables)).record
    assert json.loads(record.variables or "") == {"v": {"deep": MASK}, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": {"deep": "hunter2"}}
    assert prepared(Attempt(run, "two", number=1)).variables == variables


def test_the_runs_outputs_do_not_tell_it_either() -> None:
    run = hiding({}, outputs={"o": "${steps.one}", "v": "v: ${vars.v}"})
    record = Attempt(run, "one", number=1).concluded(done(["hunter2"], variables={"v": "hunter2"}))
    assert json.loads(record.record.outputs or "") == {"o": [MASK], "v": "v: ***"}


def test_outputs_that_cannot_be_resolved_say_why_without_it() -> None:
    run = hiding({}, outputs={"n": "${steps.one[?@ > `1`] | hunter2}"})
    record = Attempt(run, "one", number=1).concluded(done(["hunter2"])).record
    assert record.run_code == Code.POLICY_VIOLATION
    assert "hunter2" not in record.run_message


def test_a_run_with_nothing_sensitive_looks_for_nothing() -> None:
    run = make_run({}, {}, given={"password": "hunter2"})
    record = Attempt(run, "one", number=1).concluded(done("hunter2", variables={"v": 1})).record
    assert (record.output, record.sealed_output) == ('"hunter2"', None)
    assert (record.variables, record.sealed_variables) == ('{"v":1}', None)


@pytest.mark.parametrize("marked", [True, False])
def test_a_kind_of_cost_that_tells_it_is_refused_and_not_kept(marked: bool) -> None:
    run = hiding({"sensitive": ["token"]} if marked else {}, {})
    secret = "t0ken" if marked else "hunter2"
    heard = said(
        Cost(step="one", kind=f"of_{secret}", amount=1), Cost(step="one", kind="eur", amount=2)
    )
    concluded = Attempt(run, "one", number=1).concluded(done({"token": "t0ken"}), heard)
    assert concluded.result.code is Code.POLICY_VIOLATION
    assert "kind contains what is sensitive" in concluded.record.message
    assert concluded.record.costs == concluded.record.run_costs == {"eur": 2}
    assert run.memory.scope()["steps"] == {}


def test_variables_that_are_too_large_together_fail_the_step_that_sets_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_module, "MAX_VARIABLES_BYTES", 20)
    run = make_run({}, {})
    first = Attempt(run, "one", number=1).concluded(done(None, variables={"v": "y" * 10}))
    assert first.result.code is None
    second = Attempt(run, "two", number=1).concluded(done(None, "two", variables={"w": "y" * 10}))
    assert second.result.code is Code.OUTPUT_TOO_LARGE
    assert "variables" in second.record.message
    assert run.memory.variables == {"v": "y" * 10}


def test_an_attempt_that_was_cut_is_not_billed() -> None:
    run = make_run({}, {})
    decided = after_skip(run.plan, "one")
    record = Attempt(run, "one", number=1).cut(decided).record
    assert (record.code, record.unbilled) == (Code.OUTCOME_UNKNOWN, True)
    assert not Attempt(run, "one", number=1).concluded(failed()).record.unbilled


def test_variables_that_were_sealed_before_stay_sealed_when_others_are_set() -> None:
    run = make_run({"sensitive": ["v"]}, {})
    Attempt(run, "one", number=1).concluded(done(None, variables={"v": "v4lue"}))
    record = Attempt(run, "two", number=1).concluded(done(None, "two", variables={"w": 2})).record
    assert json.loads(record.variables or "") == {"v": MASK, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": "v4lue"}


# --- questions
def asked(**more: Any) -> StepResult:
    return StepResult.succeeded(
        step="one", attempt=1, output=None, pause_s=60.0, question="Use hunter2?", **more
    )


def test_a_question_is_masked_and_comes_to_no_output_yet() -> None:
    run = hiding({}, {})
    concluded = Attempt(run, "one", number=1).concluded(asked(variables={"v": 1}))
    assert concluded.decided.state is StepState.SUSPENDED
    record = concluded.record
    assert (record.question, record.output, record.code) == (f"Use {MASK}?", None, "")
    assert json.loads(record.variables or "") == {"v": 1}


def test_an_answer_is_the_steps_output_and_silence_its_failure() -> None:
    reply = Reply(approved=False, by="user:ann", comment="no")
    run = make_run({"on_failure": "continue"}, {})
    answered = Attempt(run, "one", number=1).answered(reply, "Nobody answered.")
    assert json.loads(answered.record.output or "") == reply.output
    assert (answered.decided.state, answered.decided.next_step) == (StepState.SUCCEEDED, "two")
    assert run.memory.output("one") == {"approved": False, "by": "user:ann", "comment": "no"}
    unanswered = Attempt(make_run({}), "one", number=1).answered(None, "Nobody answered.")
    assert (unanswered.result.code, unanswered.record.message) == (
        Code.TIMEOUT, "Nobody answered.",
    )  # fmt: skip
    assert unanswered.decided.outcome is ExecutionState.TIMED_OUT


def test_a_question_within_a_recovery_keeps_the_failure_until_it_is_answered() -> None:
    run = make_run({"on_failure": "recover", "recover": {"uses": "work"}}, {})
    record = Attempt(run, "one", number=2, recovers_from=BROKE).concluded(asked()).record
    assert (record.code, record.message, record.cause) == (
        "UNKNOWN_ERROR", "broke", "recovery: asked",
    )  # fmt: skip


def test_a_replayed_deterministic_step_that_asks_is_compared_by_its_answer() -> None:
    reply = Reply(approved=True, by="user:ann")
    run = make_run({"guarantee": "deterministic"}, original={"one": reply.output})
    attempt = Attempt(run, "one", number=1)
    assert attempt.concluded(asked()).result.code is None
    assert attempt.answered(reply, "").result.code is None
    other = Attempt(run, "one", number=1).answered(Reply(approved=False, by="user:ann"), "")
    assert other.result.code is Code.POLICY_VIOLATION
