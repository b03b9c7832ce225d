"""References resolve by value and type, and fail without quoting the values of the run."""

from typing import Any

import pytest

from executions.blueprints.errors import BadReference
from executions.blueprints.expressions.resolution import (
    RECOVERY_ROOTS,
    check_expression,
    check_text,
    holds,
    resolve,
)
from isolane.protocol import MAX_FRAME

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


@pytest.mark.parametrize(
    "expression",
    [
        "inputs.id",
        "steps.fetch.total",
        "inputs",
        "steps.a[0].b",
        "inputs[0]",
        "inputs | @",
        "inputs.x[*].[a, b]",
        "vars.z",
        "length(inputs.tags)",
        "!(inputs.dry_run)",
        "steps.a.x || vars.b == 'c'",
        "inputs.rows[?name == 'x'].id",
    ],
)
def test_expressions_that_may_be_published(expression: str) -> None:
    check_expression(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "env.HOME",
        "inputsx.id",
        "inputs_.id",
        "@",
        "inputs.a || @",
        "inputs.a || env.b",
        "'text'",
        "error.code",
    ],
)
def test_an_expression_with_another_root(expression: str) -> None:
    with pytest.raises(BadReference, match=r"must begin with inputs, steps or vars\."):
        check_expression(expression)


def test_the_failure_is_known_only_where_it_is_recovered_from() -> None:
    assert check_expression("error.code", RECOVERY_ROOTS).roots == {"error"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("${inputs.ok}", True),
        ("${inputs.nothing}", False),
        ("${inputs.absent}", False),
        ("${inputs.id == `7`}", True),
        ("${inputs.id == `8`}", False),
        ("${!(inputs.ok)}", False),
        ("${length(inputs.tags) > `1`}", True),
        ("${inputs.tags[?@ == 'z']}", False),
        ("${vars.zero}", True),
        ("${vars.empty}", False),
        ("${vars.none}", False),
        ("${steps.fetch.total && vars.flag}", True),
    ],
)
def test_a_condition_holds_as_in_jmespath(condition: str, expected: bool) -> None:
    scope = {**SCOPE, "vars": {"zero": 0, "empty": "", "none": {}, "flag": "no"}}
    assert holds(condition, scope) is expected


def test_what_holds_no_reference_comes_back_as_it_is() -> None:
    value = {"a": [1, {"b": "$5 {x}"}], "c": None}
    assert resolve(value, SCOPE) is value


def test_the_parameters_themselves_stay_as_they_are() -> None:
    value = {"a": ["${inputs.id}", {"b": "n${inputs.id}"}]}
    assert resolve(value, SCOPE) == {"a": [7, {"b": "n7"}]}
    assert value == {"a": ["${inputs.id}", {"b": "n${inputs.id}"}]}


@pytest.mark.parametrize("value", [["${inputs.d}"] * 300, "${inputs.d}" * 300])
@pytest.mark.parametrize("data", ["x" * 2_000_000, ["x" * 100] * 20_000, [1] * 1_000_000])
def test_references_that_come_to_more_than_a_frame_are_refused(value: Any, data: Any) -> None:
    with pytest.raises(BadReference, match="larger than 4194304 bytes"):
        resolve(value, {"inputs": {"d": data}, "steps": {}})


def test_references_that_would_nest_too_deeply_are_refused() -> None:
    deepest: Any = 1
    for _ in range(100):
        deepest = [deepest]
    assert resolve("${inputs}", {"inputs": deepest}) == deepest
    with pytest.raises(BadReference, match="deeper than 100 levels"):
        resolve({"x": "${inputs}"}, {"inputs": deepest})


@pytest.mark.parametrize("text", ["", "$5 {x}", "${inputs.a} and ${steps.b.c} }", "$ {", "$"])
def test_texts_that_may_be_published(text: str) -> None:
    check_text(text)


@pytest.mark.parametrize(
    "text", ["${", "a ${inputs.a", "${}", "${inputs.{a: b}}", "${inputs.a} ${", "$${inputs.a}"]
)
def test_a_reference_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(BadReference):
        check_text(text)


@pytest.mark.parametrize(
    ("value", "where", "path"),
    [
        ({"a": "${inputs.id}", "x": "${length(inputs.id)}"}, "with", "with.x"),
        ({"x": ["a", {"y": ["${inputs.id}", "${length(inputs.id)}"]}]}, "with", "with.x[1].y[1]"),
        ({"a": "${inputs.id}${inputs.id}", "x": "n ${length(inputs.id)}"}, "", "x"),
        ("${length(inputs.id)}", "idempotency_key", "idempotency_key"),
    ],
)
def test_a_refusal_begins_with_the_path_of_its_text(value: Any, where: str, path: str) -> None:
    with pytest.raises(BadReference) as refused:
        resolve(value, SCOPE, where)
    assert refused.value.field == path
    assert refused.value.detail == (
        f"{path}: '${{length(inputs.id)}}' cannot be evaluated on this run's values:"
        " length() expects string, array or object, got number."
    )


def test_the_same_text_twice_is_told_apart() -> None:
    half = {"inputs": {"text": "x" * (MAX_FRAME // 2)}}
    with pytest.raises(BadReference, match=r"^with\.b: '\$\{inputs\.text\}' makes"):
        resolve({"a": "${inputs.text}", "b": "${inputs.text}"}, half, "with")


def test_a_condition_that_cannot_be_evaluated_says_so() -> None:
    with pytest.raises(BadReference, match=r"^when: .* length\(\) expects .*, got null\.$"):
        holds("${length(inputs.nothing)}", SCOPE)
