"""Times, durations, sizes and messages in sentences."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from executions.explain.formatting import duration, moment, sentence, size


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 ms"),
        (0.1204, "120 ms"),
        (1, "1 s"),
        (1.388, "1.4 s"),
        (59, "59 s"),
        (90, "1.5 min"),
        (3_600, "1 h"),
        (90_000, "25 h"),
        (604_800, "7 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (14_020, "14 kB"),
        (1_234_567, "1.2 MB"),
        (3_000_000_000, "3 GB"),
    ],
)
def test_a_size_has_the_unit_that_fits(count: int, expected: str) -> None:
    assert size(count) == expected


def test_a_moment_is_in_utc() -> None:
    expected = "2026-03-04 10:02:11 UTC"
    assert moment(datetime(2026, 3, 4, 10, 2, 11, 120_000, tzinfo=UTC)) == expected
    east = timezone(timedelta(hours=2))
    assert moment(datetime(2026, 3, 4, 12, 2, 11, tzinfo=east)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("It ended", "It ended."), ("Pay?", "Pay?"), ("one\n two \t three.", "one two three.")],
)
def test_a_sentence_is_one_line_with_an_end(text: str, expected: str) -> None:
    assert sentence(text) == expected
