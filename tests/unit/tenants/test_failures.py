"""Descriptions of failures, and the time of the next try."""

import pytest
from django.db import IntegrityError

from foundation.errors import Conflict
from tenants.failures import LONGEST_DELAY_SECONDS, delay_seconds, described


def test_each_failure_waits_twice_as_long_up_to_a_bound() -> None:
    assert [delay_seconds(failures) for failures in (1, 2, 3, 8, 9, 1000)] == [
        2, 4, 8, 256, LONGEST_DELAY_SECONDS, LONGEST_DELAY_SECONDS,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Conflict("Taken."), "conflict: Taken."),
        (
            IntegrityError("duplicate key\nDETAIL: Key (a)=(secret)"),
            "database_error: duplicate key",
        ),
        (
            ZeroDivisionError("secret"),
            "internal_error: ZeroDivisionError; see the log of the process that tried",
        ),
        (Conflict("x" * 900), "conflict: " + "x" * 490),
    ],
)
def test_what_is_told_is_short_and_has_no_data(error: Exception, expected: str) -> None:
    assert described(error) == expected
