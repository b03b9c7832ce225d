"""executions.semantics.record_error: codes become sentences, messages stay as they are."""

import pytest

from executions.semantics.record_error import RecordErrorCode, error_text


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (RecordErrorCode.NONE, "", ""),
        (RecordErrorCode.NONE, "revoke: no route to host", "revoke: no route to host"),
        (RecordErrorCode.NOT_ISSUED, "", "not issued"),
        (RecordErrorCode.SEE_WORKER_LOG, "", "the worker's log says why"),
        (RecordErrorCode.ABANDONED, "ann", "Given up by ann; it may still exist."),
        ("a_code_of_tomorrow", "its message", "its message"),
    ],
)
def test_an_error_is_shown_as_a_sentence(code: str, error: str, text: str) -> None:
    assert error_text(code, error) == text


def test_every_code_has_a_sentence_of_its_own() -> None:
    sentences = [error_text(code, "x") for code in RecordErrorCode]
    assert len(set(sentences)) == len(RecordErrorCode)
