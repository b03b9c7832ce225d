"""executions.blueprints.expressions.parsing: allowed expressions, and the inputs and steps they need."""

from typing import Any

import pytest

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions.evaluation import evaluate
from executions.blueprints.expressions.parsing import MAX_EXPRESSION, parsed
from executions.blueprints.work import Work


@pytest.mark.parametrize("expression", ["inputs..id", "inputs.[", "steps.my-step.x", "inputs.'"])
def test_an_expression_that_is_no_jmespath(expression: str) -> None:
    with pytest.raises(BadReference, match="not a JMESPath"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("steps.a.x", ["a"]),
        ('steps."my-step".x', ["my-step"]),
        ("steps.a.x || steps.b", ["a", "b"]),
        ("inputs.steps.a", []),
        ("inputs.mysteps.a", []),
        ("inputs | steps.a", []),
        ("steps | a.x", ["a"]),
        ("steps.[a.x, b]", ["a", "b"]),
        ("steps.a[?x == steps.b]", ["a"]),
        ("length(steps.a.rows) > steps.b.least", ["a", "b"]),
        ('steps."my-step"[0].y', ["my-step"]),
        ("steps.*.total", []),
    ],
)
def test_the_steps_that_an_expression_needs(expression: str, keys: list[str]) -> None:
    assert list(parsed(expression).steps) == keys


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("inputs.a.x", ["a"]),
        ("inputs.a || length(inputs.b) > inputs.c", ["a", "b", "c"]),
        ("steps.inputs.a", []),
        ("inputs | a", ["a"]),
        ("inputs.rows[?inputs.x].y", ["rows"]),
    ],
)
def test_the_inputs_that_an_expression_needs(expression: str, names: list[str]) -> None:
    assert list(parsed(expression).inputs) == names


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 2000,
        "(" * (MAX_EXPRESSION - 1),
        "!" * 20_000,
        "!" * (MAX_EXPRESSION - 1) + "a",
        "inputs[" + "9" * 5000 + "]",
        "a || " * 20_000 + "a",
        "inputs | " + "[" * 450 + "@" + "]" * 450,
        "inputs | `" + "[" * 900,
        "",
    ],
)
def test_an_expression_that_would_overwhelm_the_parser_is_only_a_bad_reference(
    expression: str,
) -> None:
    with pytest.raises(BadReference) as refused:
        parsed(expression)
    assert len(refused.value.detail) < 300


def test_an_expression_has_so_many_characters_and_no_more() -> None:
    parsed("inputs." + "x" * (MAX_EXPRESSION - 7))
    with pytest.raises(BadReference, match="longer than 1000 characters"):
        parsed("inputs." + "x" * (MAX_EXPRESSION - 6))


@pytest.mark.parametrize(
    "expression",
    [
        "inputs.id | join(@, inputs)",
        "inputs | to_string(to_string(@))",
        "inputs | [@,@][] | [@,@][] | [@,@][] | [@,@][] | [@,@][] | [@,@][]",
    ],
)
def test_an_expression_that_multiplies_values_is_refused(expression: str) -> None:
    with pytest.raises(BadReference, match=r"not allowed|selects more than 10"):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("lenght(inputs.a)", "no function lenght\\(\\); did you mean 'length'"),
        ("inputs(@)", "no function inputs\\(\\)"),
        ("!inputs.a", "write !\\(inputs.name\\)"),
        ("inputs.a && !inputs.b[0]", "write !\\(inputs.name\\)"),
    ],
)
def test_a_slip_is_refused_with_the_way_out(expression: str, expected: str) -> None:
    with pytest.raises(BadReference, match=expected):
        parsed(expression)


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("inputs.a.b", ("inputs", "a", "b")),
        ("inputs", ("inputs",)),
        ('steps."my-step"', ("steps", "my-step")),
        ("inputs.a[0]", ()),
        ("inputs | a", ()),
    ],
)
def test_a_plain_path_needs_no_interpreter(expression: str, path: tuple[str, ...]) -> None:
    assert parsed(expression).path == path


@pytest.mark.parametrize(
    "value", [None, 5, "text", [], {}, {"a": None}, {"a": {"b": 1}}, {"a": "b"}]
)
def test_a_plain_path_finds_what_jmespath_finds(value: Any) -> None:
    expression = parsed("inputs.a.b")
    scope = {"inputs": value}
    assert expression.path
    assert expression.search(scope, Work(0)) == evaluate(expression.tree, scope, Work(1000))


def test_an_expression_is_parsed_once() -> None:
    assert parsed("inputs.only.once") is parsed("inputs.only.once")
