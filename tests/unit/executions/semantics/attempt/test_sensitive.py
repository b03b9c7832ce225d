"""executions.semantics.attempt: sensitive values are sealed, and masked wherever they are shown."""

import json

import pytest

from executions.models.sealing import unseal
from executions.semantics.attempt import Attempt
from executions.semantics.masking import MASK
from executions.states import ExecutionState
from isolane.protocol import Cost, Log
from isolane.results import Code
from tests.unit.executions.semantics.attempt.runs import (
    EXECUTION,
    SENSITIVE,
    done,
    failed,
    hiding,
    make_run,
    output_of,
    prepared,
)


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
    record = attempt.finish(done(1)).record
    assert json.loads(record.inputs or "") == {"p": MASK, "both": "ann:***", "n": 1, "size": 3}


def test_what_cannot_be_shown_masked_is_masked_as_a_whole() -> None:
    run = make_run(
        {"with": {"x": "${inputs.password.list[?@ > `1`]}"}},
        given={"password": {"list": [1, 2]}},
        inputs=SENSITIVE,
    )
    attempt = Attempt(run, "one", number=1)
    assert prepared(attempt).parameters == {"x": [2]}
    shown = json.loads(attempt.finish(done(1)).record.inputs or "")
    assert shown["x"] in (MASK, None)


def test_a_field_of_what_is_sensitive_as_a_whole_is_masked_and_not_missing() -> None:
    run = make_run(
        {"sensitive": True},
        {"with": {"list": ["${steps.one.pin}", {"none": "${steps.one.none}", "n": 1}]}},
        outputs={"pin": "${steps.one.pin}", "none": "${steps.one.none}"},
    )
    Attempt(run, "one", number=1).finish(done({"pin": "9917", "none": None}))
    last = Attempt(run, "two", number=1)
    assert prepared(last).parameters == {"list": ["9917", {"none": None, "n": 1}]}
    record = last.finish(done(None, "two")).record
    assert json.loads(record.inputs or "") == {"list": [MASK, {"none": None, "n": 1}]}
    assert json.loads(record.outputs or "") == {"pin": MASK, "none": None}


def test_a_sensitive_output_is_sealed_and_masked() -> None:
    run = make_run({"sensitive": ["token", "v"]}, {}, outputs={"t": "${steps.one.token}"})
    record = (
        Attempt(run, "one", number=1)
        .finish(done({"token": "t0ken", "n": 1}, variables={"v": "v4lue", "w": 2}))
        .record
    )
    assert record.output == '{"n":1,"token":"***"}'
    assert unseal(EXECUTION, record.sealed_output or b"") == {"token": "t0ken", "n": 1}
    assert json.loads(record.variables or "") == {"v": MASK, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": "v4lue"}
    end = Attempt(run, "two", number=1).finish(done(1, "two")).record
    assert end.outputs == '{"t":"***"}'


def test_outputs_made_of_what_is_sensitive_are_masked_and_do_not_fail_the_run() -> None:
    run = make_run(
        {"sensitive": ["numbers"]}, outputs={"total": "${sum(steps.one.numbers)}", "n": 1}
    )
    outcome = Attempt(run, "one", number=1).finish(done({"numbers": [1, 2]}))
    assert outcome.decided.outcome is ExecutionState.SUCCEEDED
    assert outcome.record.outputs == '{"total":"***","n":1}'


def test_what_a_sensitive_step_says_is_masked_by_what_it_returned() -> None:
    run = make_run({"sensitive": True}, {})
    output = output_of(Log(step="one", level="info", message="got t0ken"))
    record = Attempt(run, "one", number=1).finish(done({"token": "t0ken"}), output).record
    assert [line.message for line in record.lines] == ["got ***"]
    assert record.output == '"***"'


def test_messages_and_causes_are_masked() -> None:
    run = make_run({}, {}, given={"password": "hunter2"}, inputs=SENSITIVE)
    record = (
        Attempt(run, "one", number=1).finish(failed(message="no hunter2", cause="hunter2")).record
    )
    assert (record.message, record.cause, record.run_message) == ("no ***", MASK, "no ***")


def test_what_a_step_returns_of_a_sensitive_input_is_sealed_though_nobody_marked_it() -> None:
    run = hiding({}, {"with": {"said": "${steps.one.said}"}})
    output = {"said": "it is hunter2", "hunter2": [1], "n": 4711}
    record = Attempt(run, "one", number=1).finish(done(output)).record
    assert json.loads(record.output or "") == {"said": "it is ***", MASK: [1], "n": 4711}
    assert unseal(EXECUTION, record.sealed_output or b"") == output
    later = Attempt(run, "two", number=1)
    assert prepared(later).parameters == {"said": "it is hunter2"}
    assert later.finish(done(1, "two")).record.inputs == '{"said":"it is ***"}'


def test_what_a_step_sets_of_it_is_sealed_variable_by_variable() -> None:
    run = hiding({}, {})
    variables = {"v": {"deep": "hunter2"}, "w": 2}
    record = Attempt(run, "one", number=1).finish(done(None, variables=variables)).record
    assert json.loads(record.variables or "") == {"v": {"deep": MASK}, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": {"deep": "hunter2"}}
    assert prepared(Attempt(run, "two", number=1)).variables == variables


def test_the_runs_outputs_do_not_tell_it_either() -> None:
    run = hiding({}, outputs={"o": "${steps.one}", "v": "v: ${vars.v}"})
    record = Attempt(run, "one", number=1).finish(done(["hunter2"], variables={"v": "hunter2"}))
    assert json.loads(record.record.outputs or "") == {"o": [MASK], "v": "v: ***"}


def test_outputs_that_cannot_be_resolved_say_why_without_it() -> None:
    run = hiding({}, outputs={"n": "${steps.one[?@ > `1`] | hunter2}"})
    record = Attempt(run, "one", number=1).finish(done(["hunter2"])).record
    assert record.run_code == Code.POLICY_VIOLATION
    assert "hunter2" not in record.run_message


def test_a_run_with_nothing_sensitive_looks_for_nothing() -> None:
    run = make_run({}, {}, given={"password": "hunter2"})
    record = Attempt(run, "one", number=1).finish(done("hunter2", variables={"v": 1})).record
    assert (record.output, record.sealed_output) == ('"hunter2"', None)
    assert (record.variables, record.sealed_variables) == ('{"v":1}', None)


@pytest.mark.parametrize("marked", [True, False])
def test_a_kind_of_cost_that_tells_it_is_refused_and_not_kept(marked: bool) -> None:
    run = hiding({"sensitive": ["token"]} if marked else {}, {})
    secret = "t0ken" if marked else "hunter2"
    output = output_of(
        Cost(step="one", kind=f"of_{secret}", amount=1), Cost(step="one", kind="eur", amount=2)
    )
    outcome = Attempt(run, "one", number=1).finish(done({"token": "t0ken"}), output)
    assert outcome.result.code is Code.POLICY_VIOLATION
    assert "kind contains a sensitive value" in outcome.record.message
    assert outcome.record.costs == outcome.record.run_costs == {"eur": 2}
    assert run.memory.scope()["steps"] == {}


def test_variables_that_were_sealed_before_stay_sealed_when_others_are_set() -> None:
    run = make_run({"sensitive": ["v"]}, {})
    Attempt(run, "one", number=1).finish(done(None, variables={"v": "v4lue"}))
    record = Attempt(run, "two", number=1).finish(done(None, "two", variables={"w": 2})).record
    assert json.loads(record.variables or "") == {"v": MASK, "w": 2}
    assert unseal(EXECUTION, record.sealed_variables or b"") == {"v": "v4lue"}
