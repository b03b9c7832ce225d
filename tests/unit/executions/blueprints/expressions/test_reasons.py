"""executions.blueprints.expressions.reasons: types, and never values."""

from typing import Any

import jmespath
import pytest

from executions.blueprints.expressions.reasons import reason_of

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("length(n)", "length() expects string, array or object, got number"),
        ("abs(text)", "abs() expects number, got string"),
        ("sum(text)", "sum() expects array of numbers, got string"),
        ("sum(mixed)", "sum() expects array of numbers, got one with string in it"),
        ("sort(absent)", "sort() expects array of strings or array of numbers, got null"),
        ("length(n, n)", "length() takes 1 argument, got 2"),
        ("merge()", "merge() takes at least 1 argument, got 0"),
    ],
)
def test_what_the_library_refuses_is_told_by_types(expression: str, expected: str) -> None:
    values: dict[str, Any] = {"n": 5, "text": SECRET, "mixed": [1, SECRET]}
    with pytest.raises(ValueError) as raised:
        jmespath.search(expression, values)
    assert reason_of(raised.value) == expected


def test_what_would_quote_values_is_not_told() -> None:
    assert reason_of(ValueError(SECRET)) == ""
    assert SECRET not in reason_of(TypeError(SECRET))
    assert "deep" in reason_of(RecursionError(SECRET))
