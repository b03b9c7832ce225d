"""executions.blueprints.schema.inputs: inputs that fit a schema, and checks that end soon for any of both."""

from typing import Any

import pytest

from executions.blueprints import work
from executions.blueprints.errors import BlueprintTooExpensive, InvalidBlueprint
from executions.blueprints.schema.document import check
from executions.blueprints.schema.inputs import (
    MAX_INPUTS_BYTES,
    WantsText,
    check_inputs,
    known_inputs,
)
from foundation.errors import InvalidInput, TooMuchToCheck

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SLOW = "^(a+)+$"  # with Python's re, the time doubles with each further a
FATAL = "a" * 60 + "!"


def flow(inputs: dict[str, Any]) -> dict[str, Any]:
    return check({"name": "flow", "steps": [{"key": "a", "uses": "n"}], "inputs": inputs})


INVOICE = {
    "type": "object",
    "required": ["invoice"],
    "properties": {"invoice": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({}, "inputs"),
        ({"invoice": "seven"}, "inputs.invoice"),
        ([], "inputs"),
        ({"invoice": 7, "note": "\0"}, "inputs"),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: Any, field: str) -> None:
    with pytest.raises(InvalidInput, match="inputs") as refused:
        check_inputs(flow(INVOICE), inputs)
    assert refused.value.field == field


def test_inputs_that_fit() -> None:
    check_inputs(flow(INVOICE), {"invoice": 7})
    check_inputs(flow({}), {"any": "thing"})


def test_a_schema_cannot_make_the_platform_fetch_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda request, *_: asked.append(request))
    with pytest.raises(InvalidInput):
        check_inputs({"inputs": {"$ref": "http://169.254.169.254/x"}}, {"x": 1})
    assert not asked


def test_inputs_that_are_nested_too_deeply() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    with pytest.raises(InvalidInput, match=r"inputs: .*deeper than 100 levels") as refused:
        check_inputs(flow({}), {"x": deep})
    assert refused.value.field == "inputs"


def test_inputs_that_are_too_large() -> None:
    check_inputs(flow({}), {"x": "y" * (MAX_INPUTS_BYTES - 8)})
    with pytest.raises(InvalidInput, match="1048577 bytes of JSON are over the limit") as refused:
        check_inputs(flow({}), {"x": "y" * (MAX_INPUTS_BYTES - 7)})
    assert refused.value.field == "inputs"


def test_a_refusal_does_not_quote_whole_values() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_inputs(flow({"properties": {"x": {"type": "string"}}}), {"x": list(range(1000))})
    assert refused.value.field == "inputs.x"
    assert len(refused.value.detail) < 250


@pytest.mark.parametrize(
    ("schema", "inputs", "field"),
    [
        ({"properties": {"x": {"pattern": SLOW}}}, {"x": FATAL}, "inputs.x"),
        (
            {"$schema": DIALECT, "properties": {"x": {"pattern": SLOW}, "y": {"$ref": "#"}}},
            {"y": {"x": FATAL}},
            "inputs.y.x",
        ),
        ({"patternProperties": {SLOW: False}, "additionalProperties": False}, {FATAL: 1}, "inputs"),
        (
            {"patternProperties": {SLOW: True}, "additionalProperties": {"type": "string"}},
            {FATAL: 1},
            f"inputs['{FATAL}']",
        ),
        ({"patternProperties": {"^a": {"type": "string"}}}, {"ab": 1}, "inputs.ab"),
        ({"properties": {"x": {"pattern": "^a$"}}}, {"x": "a\n"}, "inputs.x"),
    ],
)
def test_patterns_take_linear_time(schema: dict[str, Any], inputs: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_inputs(flow(schema), inputs)
    assert refused.value.field == field


def test_patterns_that_match() -> None:
    schema = {
        "properties": {"x": {"pattern": SLOW}},
        "patternProperties": {"^n_": {"type": "integer"}},
        "additionalProperties": False,
    }
    check_inputs(flow(schema), {"x": "aaa", "n_1": 1})


@pytest.mark.parametrize(
    ("schema", "field", "reason"),
    [
        (
            {"properties": {"x": {"pattern": "(?=a)"}}},
            "$.inputs.properties.x.pattern",
            "RE2: invalid perl operator",
        ),
        ({"allOf": [{"pattern": r"(a)\1"}]}, "$.inputs.allOf[0].pattern", "RE2: invalid escape"),
        ({"patternProperties": {"(": {}}}, "$.inputs.patternProperties", "RE2: missing"),
        ({"pattern": "(" * 5000}, "$.inputs.pattern", "RE2"),
        ({"x-own": {"pattern": 5}}, "$.inputs.x-own.pattern", "not text"),
        ({"unevaluatedProperties": False}, "$.inputs.unevaluatedProperties", "not supported"),
        ({"$schema": DRAFT_7}, "$.inputs.$schema", "only https"),
        ({"properties": {"x": {"$schema": DRAFT_7}}}, "$.inputs", "at the top only"),
        ({"default": [{"$schema": DRAFT_7}]}, "$.inputs", "at the top only"),
        ({"allOf": [{"pattern": "a"}] * 101}, "$.inputs", "more than 100 patterns"),
    ],
)
def test_a_schema_that_cannot_be_bounded_is_refused(
    schema: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(InvalidBlueprint, match=reason) as refused:
        flow(schema)
    assert refused.value.field == field
    assert refused.value.detail.startswith(field)


def test_names_and_values_are_not_keywords() -> None:
    flow({"properties": {"pattern": {"default": {"pattern": "("}}, "unevaluatedItems": {}}})


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ([1, True, "1", None, [1], {}], True),
        ([[0], [False]], True),
        ([{"n": number} for number in range(50_000)], True),
    ],
)
def test_unique_items(items: list[Any], unique: bool) -> None:
    schema = flow({"properties": {"x": {"uniqueItems": True}}})
    if unique:
        check_inputs(schema, {"x": items})
        return
    with pytest.raises(InvalidInput, match="non-unique"):
        check_inputs(schema, {"x": items})


LAUGHS = {f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(40)}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {**LAUGHS, "d40": {"type": "string"}}, "$ref": "#/$defs/d0"},
        {"properties": {"x": {"anyOf": [False] * 900}}},
        {"properties": {"x": {"items": {"enum": [["y"] * 1000] * 20}}}},
        {"properties": {"x": {"items": {"pattern": "z{1000}"}}}},
        {"properties": {"x": {"contains": {"type": "integer"}}}},
        {"properties": {"x": {"uniqueItems": True}}},
    ],
)
def test_a_check_that_takes_too_much_work_is_given_up(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = flow(schema)
    monkeypatch.setattr(work, "CHECK_WORK", 300_000)
    with pytest.raises(TooMuchToCheck, match="too much work") as refused:
        check_inputs(document, {"x": ["z"] * 2000})
    error = refused.value
    assert (error.field, error.code, error.http_status) == ("inputs", "too_much_work", 422)


@pytest.mark.parametrize("pattern", ["(?:a?){900}b", "(?:a?){600}b"])
def test_a_long_match_does_not_begin(pattern: str) -> None:
    """Half a megabyte would take RE2 seconds, in which nobody can end it."""
    document = flow({"properties": {"x": {"pattern": pattern}}})
    with pytest.raises(TooMuchToCheck):
        check_inputs(document, {"x": "a" * 500_000})


def test_many_large_refusals_take_no_memory() -> None:
    schema = flow({"properties": {"x": {"anyOf": [{"type": "string"}] * 50}}})
    with pytest.raises(InvalidInput) as refused:
        check_inputs(schema, {"x": ["y" * 1000] * 100})
    assert len(refused.value.detail) < 500


LEGITIMATE = [
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@([a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,61}$",
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
    r"^https?://[^\s/$.?#].[^\s]*$",
    r"^\p{L}[\p{L}\p{N} .,'-]*$",
    r"^.{1,255}$",
]


@pytest.mark.parametrize("pattern", LEGITIMATE)
def test_patterns_that_people_use_can_be_published_and_checked(pattern: str) -> None:
    document = flow({"properties": {"x": {"items": {"pattern": pattern}}}})
    with pytest.raises(InvalidInput, match="does not match"):
        check_inputs(document, {"x": ["\n" * 60] * 1000})


def test_a_pattern_that_is_too_large_is_refused_when_it_is_published() -> None:
    with pytest.raises(BlueprintTooExpensive, match="compiles to") as refused:
        flow({"properties": {"x": {"pattern": r"^\p{L}{1,50}$"}}})
    error = refused.value
    assert (error.field, error.code) == ("$.inputs.properties.x.pattern", "too_much_work")
    assert error.http_status == 422


def test_a_pattern_that_was_published_before_the_limit_is_priced() -> None:
    document = {"inputs": {"properties": {"x": {"pattern": r"^\p{L}{1,50}$"}}}}
    check_inputs(document, {"x": "Ada"})
    with pytest.raises(TooMuchToCheck):
        check_inputs(document, {"x": "Ada " * 1000})


def test_a_schema_that_is_too_large_to_check_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHECK_WORK", 2_000_000)
    with pytest.raises(BlueprintTooExpensive, match="check this schema") as refused:
        flow({"properties": {f"p{number}": {"type": "string"} for number in range(900)}})
    assert refused.value.field == "$.inputs"


def test_a_number_that_is_too_long_for_its_schema_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be checked"):
        check_inputs(flow({"properties": {"x": {"multipleOf": 0.5}}}), {"x": 10**400})


SECRET = "4111111111111111"
CARD = {
    "properties": {"card": {"type": "string", "sensitive": True, "pattern": "^[0-9 ]{19}$"}},
    "additionalProperties": {"type": "integer"},
}


@pytest.mark.parametrize(
    ("schema", "inputs", "field", "expected"),
    [
        (CARD, {"card": int(SECRET)}, "inputs.card", '{"type": "string"}'),
        (CARD, {"card": {SECRET: 1}}, "inputs.card", '{"type": "string"}'),
        (CARD, {"card": SECRET}, "inputs.card", '{"pattern": "^[0-9 ]{19}$"}'),
        (
            {"properties": {"card": {"sensitive": True, "additionalProperties": {"type": "null"}}}},
            {"card": {SECRET: SECRET}},
            "inputs.card",
            '{"type": "null"}',
        ),
        ({**CARD, "minProperties": 3}, {"card": SECRET[:10]}, "inputs", '{"minProperties": 3}'),
        ({**CARD, "not": {}}, {"card": SECRET}, "inputs", "schema asks for"),
        (
            {**CARD, "enum": [{"n": number} for number in range(50)]},
            {"card": f"{SECRET}   "},
            "inputs",
            "see enum",
        ),
        (
            {**CARD, "required": ["name"]},
            {"card": f"{SECRET}   "},
            "inputs",
            "'name' is a required",
        ),
    ],
)
def test_a_sensitive_value_is_never_quoted(
    schema: dict[str, Any], inputs: Any, field: str, expected: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_inputs(flow(schema), inputs)
    assert (refused.value.field, expected in refused.value.detail) == (field, True)
    assert SECRET[:10] not in refused.value.detail


def test_beside_a_sensitive_input_others_are_quoted() -> None:
    with pytest.raises(InvalidInput, match="'seven' is not of type 'integer'"):
        check_inputs(flow(CARD), {"n": "seven"})


@pytest.mark.parametrize(
    ("value", "wants_text"), [(5, True), (1.5, True), (True, True), (None, True), ([], False)]
)
def test_a_number_where_text_is_wanted_is_told_apart(value: Any, wants_text: bool) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_inputs(flow({"properties": {"x": {"type": "string"}}}), {"x": value})
    assert isinstance(refused.value, WantsText) is wants_text
    assert refused.value.code == "invalid_input"


def test_which_inputs_a_run_can_have() -> None:
    closed = {"properties": {"a": {}, "b": {}}, "additionalProperties": False}
    assert known_inputs(closed) == frozenset({"a", "b"})
    assert known_inputs({**closed, "patternProperties": {"^x": {}}}) is None
    assert known_inputs({"properties": {"a": {}}}) is None
