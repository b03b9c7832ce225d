"""executions.semantics.attempt: injected secrets of resources are neither stored nor shown."""

import base64
from typing import Any
from urllib.parse import quote

import pytest

from executions.semantics.active_run import ActiveRun
from executions.semantics.attempt import Attempt
from executions.semantics.masking import MASK
from executions.states import ExecutionState
from isolane.protocol import Log
from isolane.results import Code, StepResult
from tests.unit.executions.semantics.attempt.runs import done, failed, make_run, output_of, prepared

SECRET = "p@ss w/rd"
FORMS = [SECRET, base64.b64encode(f"u:{SECRET}".encode()).decode(), quote(SECRET, safe="")]


def with_secret(*steps: dict[str, Any], **fields: Any) -> ActiveRun:
    run = make_run(*steps, **fields)
    run.memory.masker.learn_secrets([SECRET])
    return run


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kept", [{"a": ["{}"]}, {"{}": 1}, "x{}y"], ids=str)
def test_an_output_with_a_secret_is_refused_and_not_kept(form: str, kept: Any) -> None:
    run = with_secret({}, {})
    output = _filled(kept, form)
    outcome = Attempt(run, "one", number=1).finish(done(output))
    assert outcome.result.code is Code.POLICY_VIOLATION
    assert outcome.decided.outcome is ExecutionState.FAILED
    assert outcome.record.output is None
    assert form not in repr(outcome.record)
    assert "output contains a secret" in outcome.record.message


def _filled(value: Any, form: str) -> Any:
    if isinstance(value, str):
        return value.replace("{}", form)
    if isinstance(value, dict):
        return {_filled(name, form): _filled(inner, form) for name, inner in value.items()}
    return [_filled(inner, form) for inner in value] if isinstance(value, list) else value


def test_a_variable_with_a_secret_is_refused_and_not_kept() -> None:
    run = with_secret({}, {})
    result = StepResult.succeeded(step="one", attempt=1, output=1, variables={"token": SECRET})
    outcome = Attempt(run, "one", number=1).finish(result)
    assert outcome.result.code is Code.POLICY_VIOLATION
    assert outcome.record.variables is None
    assert dict(run.memory.variables) == {}


@pytest.mark.parametrize("form", FORMS)
def test_lines_and_errors_are_told_without_it(form: str) -> None:
    run = with_secret({"on_failure": "continue"}, {})
    lines = output_of(Log(step="one", level="info", message=f"login {form} ok"))
    record = Attempt(run, "one", number=1).finish(failed(Code.UNKNOWN_ERROR, form), lines).record
    (line,) = record.lines
    assert MASK in line.message
    assert form not in repr(record)


def test_parameters_that_happen_to_hold_it_are_shown_without_it() -> None:
    run = with_secret({"with": {"p": "${inputs.p}"}}, given={"p": SECRET})
    attempt = Attempt(run, "one", number=1)
    assert prepared(attempt).parameters == {"p": SECRET}
    assert SECRET not in (attempt.finish(done(1)).record.inputs or "")


def test_without_secrets_nothing_is_looked_for() -> None:
    run = make_run({})
    assert Attempt(run, "one", number=1).finish(done(SECRET)).result.code is None
