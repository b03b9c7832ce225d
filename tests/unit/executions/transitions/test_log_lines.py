"""executions.transitions.log_lines: lines as columns, in their order."""

from datetime import UTC, datetime, timedelta

from executions.semantics.attempt_record import LogLine
from executions.transitions.log_lines import LINE_PARAMETERS, line_columns

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_each_column_has_a_value_of_every_line() -> None:
    lines = [
        LogLine(at=NOON + timedelta(seconds=number), level=level, message=f"line {number}")
        for number, level in enumerate(("info", "error"))
    ]
    assert line_columns(lines) == {
        "times": [NOON, NOON + timedelta(seconds=1)],
        "levels": ["info", "error"],
        "messages": ["line 0", "line 1"],
    }


def test_they_are_the_parameters_of_the_part() -> None:
    assert tuple(line_columns([])) == LINE_PARAMETERS
