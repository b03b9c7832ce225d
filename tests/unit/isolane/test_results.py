"""isolane.results: codes and redaction."""

import errno

import pytest

from isolane.results import Code, StepError, StepResult
from isolane.text import MESSAGE_MAX

RETRIED = {
    "TRANSIENT_ERROR": 1000,
    "RATE_LIMIT_ERROR": 5000,
    "TIMEOUT": 1000,
    "RESOURCE_ERROR": 1000,
}


@pytest.mark.parametrize("code", Code)
def test_the_table_says_which_codes_are_retried(code: Code) -> None:
    assert code.retryable == (code in RETRIED)
    assert code.base_ms == RETRIED.get(code, 0)


def test_an_unexpected_error_is_redacted() -> None:
    error = ValueError("password=hunter2")
    result = StepResult.from_error(error, step="fetch", attempt=2, node="invoices.fetch")
    assert result == StepResult(
        step="fetch",
        attempt=2,
        status="failed",
        code=Code.UNKNOWN_ERROR,
        message="ValueError in node invoices.fetch",
        cause="ValueError",
        trace="ValueError: password=hunter2\n",
    )


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError(errno.ENETUNREACH, "to 10.0.0.1"), "OSError (ENETUNREACH)"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "ConnectionRefusedError (ECONNREFUSED)"),
        (OSError("without a number"), "OSError"),
        (OSError(70000, "of nobody"), "OSError"),
    ],
)
def test_the_number_of_a_system_call_is_shown_by_its_name(error: OSError, shown: str) -> None:
    result = StepResult.from_error(error, step="fetch", attempt=1, node="a.b")
    assert result.message == f"{shown} in node a.b"


def test_a_step_error_keeps_its_code_and_message_but_not_its_cause_text() -> None:
    with pytest.raises(StepError) as caught:
        raise StepError("RATE_LIMIT_ERROR", "slow down") from KeyError("password=hunter2")
    result = StepResult.from_error(caught.value, step="a", attempt=0, node="n")
    assert (result.code, result.message, result.cause) == (
        Code.RATE_LIMIT_ERROR,
        "slow down",
        "KeyError",
    )
    assert result.trace == ""


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(ValueError, match="NOT_A_CODE"):
        StepError("NOT_A_CODE", "")


def test_a_message_is_bounded_and_storable() -> None:
    error = StepError(Code.UNKNOWN_ERROR, "\x00\ud800" + "x" * 10_000)
    message = StepResult.from_error(error, step="a", attempt=0, node="n").message
    assert len(message) == MESSAGE_MAX
    assert message.startswith("\ufffd?x")
    assert message.endswith("x…")


@pytest.mark.parametrize(("status", "code"), [("failed", None), ("succeeded", Code.TIMEOUT)])
def test_exactly_a_failed_result_has_a_code(status: str, code: Code | None) -> None:
    with pytest.raises(ValueError, match="has a code"):
        StepResult(step="a", attempt=0, status=status, code=code)  # type: ignore[arg-type]
