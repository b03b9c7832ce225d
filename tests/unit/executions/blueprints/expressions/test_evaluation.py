"""executions.blueprints.expressions.evaluation: what jmespath finds, and an end to every expression."""

import copy
from typing import Any

import jmespath
import pytest

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions import evaluation
from executions.blueprints.expressions.evaluation import evaluate
from executions.blueprints.expressions.resolution import holds, resolve
from executions.blueprints.work import TooMuchWork, Work

ROWS = [{"a": number % 7, "b": str(number)} for number in range(100)]
SCOPE: dict[str, Any] = {
    "inputs": {
        "numbers": [3, 1.5, 2],
        "texts": ["b", "a", "é"],
        "rows": ROWS,
        "same": copy.deepcopy(ROWS),
        "nested": [[1, [2]], 3, []],
        "object": {"x": 1, "y": None},
        "text": "needle in hay",
        "zero": 0,
        "yes": True,
    }
}


@pytest.mark.parametrize(
    "expression",
    [
        "sort(inputs.numbers)", "sort(inputs.texts) | reverse(@)", "max(inputs.texts)", "sum(inputs.numbers)",
        "inputs.rows[?a == `3`].b", "inputs.rows[?b > '5' || a < `2`]", "inputs.rows == inputs.same",
        "inputs.rows != inputs.same", "inputs.nested[]", "inputs.nested[][]", "inputs.text[]", "inputs.numbers[::-1]",
        "inputs.text[0:2]", "sort_by(inputs.rows, &b)[0]", "max_by(inputs.rows, &a)", "min_by(inputs.rows, &b)",
        "merge(inputs.object, inputs.rows[0])", "keys(inputs.object)", "values(inputs.object)", "inputs.object.*",
        "contains(inputs.text, 'hay')", "contains(inputs.rows, inputs.rows[0])", "contains(inputs.numbers, `2`)",
        "map(&a, inputs.rows)", "to_array(inputs.text)", "to_number('12')", "not_null(inputs.object.y, `1`)",
        "length(inputs.rows)", "type(inputs.rows)", "inputs.rows[*].[a, b]", "inputs.zero == inputs.yes",
        "inputs.yes > inputs.zero", "inputs.object < `1`", "!(inputs.zero)", "starts_with(inputs.text, 'need')",
    ],
)  # fmt: skip
def test_it_finds_what_jmespath_finds(expression: str) -> None:
    compiled = jmespath.compile(expression)
    found = evaluate(compiled.parsed, SCOPE, Work(10_000_000))
    assert found == compiled.search(SCOPE)
    assert type(found) is type(compiled.search(SCOPE))


LARGE: dict[str, Any] = {
    "inputs": {
        "numbers": list(range(20_000, 0, -1)),
        "texts": [f"{'x' * 50}{number}" for number in range(10_000)],
        "rows": [{"a": number, "b": str(number)} for number in range(10_000)],
        "same": [{"a": number, "b": str(number)} for number in range(10_000)],
        "object": {f"k{number}": number for number in range(20_000)},
        "text": "a" * 500_000,
    }
}


def piped(first: str, *then: str) -> str:
    """As much as an expression can hold."""
    expression = first
    while len(expression) < 950:
        expression += "".join(f" | {each}" for each in then)
    return expression


@pytest.mark.parametrize(
    "expression",
    [
        piped("sort(inputs.numbers)", "reverse(@)", "sort(@)"),
        piped("inputs.texts", "sort(@)", "reverse(@)"),
        piped("inputs.rows", "sort_by(@, &b)"),
        piped("inputs.rows", "[?a != b]"),
        piped("inputs.numbers", "[*]"),
        piped("inputs.numbers", "[]"),
        piped("inputs.numbers", "[::-1]"),
        piped("inputs.rows", "map(&@, @)"),
        piped("inputs.object", "merge(@, @)"),
        piped("inputs.text", "reverse(@)"),
        "inputs.numbers | [@, @][] | [@, @][] | [@, @][] | [@, @][] | [@, @][]",
        "inputs.rows[*].[a, b, a, b, a, b, a, b, a, b]",
        " && ".join(["max_by(inputs.rows, &b)"] * 35),
        " && ".join(["max(inputs.texts)"] * 45),
        " && ".join(["inputs.rows == inputs.same"] * 30),
        " || ".join(["contains(inputs.rows, inputs.object)"] * 25),
        " || ".join([f"contains(inputs.text, '{'a' * 40}b')"] * 13),
        " && ".join(["!to_number(inputs.text)"] * 35),
        " && ".join(["sum(inputs.numbers)"] * 40),
    ],
)
def test_an_expression_that_takes_too_much_work_is_given_up(expression: str) -> None:
    assert len(expression) <= 1000
    tree = jmespath.compile(expression).parsed
    with pytest.raises(TooMuchWork):
        evaluate(tree, LARGE, Work(2_500_000))


def test_all_references_of_a_step_have_one_limit() -> None:
    value = ["${sort(inputs.numbers)[0]}"]
    assert resolve(value, LARGE) == [1]
    with pytest.raises(BadReference, match="takes too much work") as refused:
        resolve(value * 200, LARGE)
    assert "sort(inputs.numbers)" in refused.value.detail


def test_a_condition_has_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = "${contains(inputs.rows, inputs.object)}"
    assert holds(condition, LARGE) is False
    monkeypatch.setattr(evaluation, "MAX_WORK", 100_000)
    with pytest.raises(BadReference, match="takes too much work"):
        holds(condition, LARGE)


def test_plain_paths_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MAX_WORK", 0)
    assert resolve("${inputs.rows}", SCOPE) == ROWS


def test_a_long_number_counts_as_long() -> None:
    scope = {"inputs": {"n": [10**4000] * 100}}
    assert resolve("${inputs.n}", scope) == scope["inputs"]["n"]
    with pytest.raises(BadReference, match="larger than"):
        resolve(["${inputs.n}"] * 200, scope)
