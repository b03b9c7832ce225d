"""executions.blueprint.expressions: references resolve by value and type, and fail without quoting the run's values."""

from typing import Any

import pytest

from executions.blueprint.errors import BadReference
from executions.blueprint.expressions import (
    STEP_REFERENCE,
    check_expression,
    references,
    resolve,
)

SCOPE = {
    "inputs": {"id": 7, "tags": ["a", "b"], "ok": True, "mixed": ["secret", 5], "nothing": None},
    "steps": {"fetch": {"total": "12.50", "rows": [{"n": 1}, {"n": 2}]}},
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${inputs.id}", 7),
        ("${ inputs.ok }", True),
        ("${inputs.tags}", ["a", "b"]),
        ("${steps.fetch.rows[1]}", {"n": 2}),
        ("${inputs.absent}", None),
    ],
)
def test_a_reference_that_stands_alone_keeps_its_type(value: str, expected: Any) -> None:
    assert resolve(value, SCOPE) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Pay ${steps.fetch.total}?", "Pay 12.50?"),
        ("${inputs.id}/${inputs.tags}", '7/["a", "b"]'),
        ("it is ${inputs.ok}, ${inputs.nothing}", "it is true, null"),
        ("$ {inputs.id} $5", "$ {inputs.id} $5"),
    ],
)
def test_inside_text_it_becomes_text(value: str, expected: str) -> None:
    assert resolve(value, SCOPE) == expected


def test_it_is_found_at_any_depth() -> None:
    value = {"a": [{"b": "${inputs.id}"}, 3], "c": {"d": "n${inputs.id}"}}
    assert resolve(value, SCOPE) == {"a": [{"b": 7}, 3], "c": {"d": "n7"}}
    assert list(references(value)) == ["inputs.id", "inputs.id"]


def test_a_value_that_looks_like_a_reference_is_not_resolved_again() -> None:
    assert resolve("${inputs.x}", {"inputs": {"x": "${inputs.y}", "y": 1}}) == "${inputs.y}"


@pytest.mark.parametrize(
    "expression",
    [
        "sum(inputs.mixed)",
        "inputs.mixed[?@ > `1`]",
        "max_by(inputs.mixed, &@)",
        "inputs.tags[::0]",
        "unknown(inputs.id)",
    ],
)
def test_what_cannot_be_evaluated_is_refused_without_quoting_values(expression: str) -> None:
    with pytest.raises(BadReference) as refused:
        resolve(f"${{{expression}}}", SCOPE)
    assert expression in refused.value.detail
    assert "secret" not in refused.value.detail


@pytest.mark.parametrize("expression", ["inputs.id", "steps.fetch.total", "inputs", "steps.a[0].b"])
def test_expressions_that_may_be_published(expression: str) -> None:
    check_expression(expression)


@pytest.mark.parametrize("expression", ["inputs..id", "inputs.[", "steps.my-step.x", "inputs.'"])
def test_an_expression_that_is_no_jmespath(expression: str) -> None:
    with pytest.raises(BadReference, match="not a JMESPath"):
        check_expression(expression)


@pytest.mark.parametrize("expression", ["env.HOME", "inputsx.id", "length(inputs.tags)", "@"])
def test_an_expression_with_another_root(expression: str) -> None:
    with pytest.raises(BadReference, match="must begin with inputs"):
        check_expression(expression)


@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("steps.a.x", ["a"]),
        ('steps."my-step".x', ["my-step"]),
        ("steps.a.x || steps.b", ["a", "b"]),
        ("inputs.steps.a", []),
        ("inputs.mysteps.a", []),
    ],
)
def test_the_steps_that_an_expression_needs(expression: str, keys: list[str]) -> None:
    assert STEP_REFERENCE.findall(expression) == keys
