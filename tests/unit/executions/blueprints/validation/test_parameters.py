"""executions.blueprints.validation.parameters: what cannot fit is refused, what may fit is left to the run."""

from typing import Any

import pytest

from executions.blueprints import work
from executions.blueprints.errors import BlueprintTooExpensive, InvalidBlueprint
from executions.blueprints.validation.nodes import NodeInfo
from executions.blueprints.validation.parameters import check_parameters
from executions.blueprints.work import check_budget
from tests.unit.executions.blueprints.nodes import ANY, SHIP, node

WHERE = "$.steps[0].with"
INTEGERS = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}


def refusal(described: NodeInfo, **parameters: Any) -> InvalidBlueprint:
    with pytest.raises(InvalidBlueprint) as refused:
        check_parameters(described, parameters, WHERE)
    return refused.value


@pytest.mark.parametrize(
    "parameters",
    [
        {"id": 7},
        {"id": 7, "speed": "fast"},
        {"id": "${inputs.id}", "speed": "${vars.speed}"},
        {"id": 7, "speed": "f${inputs.rest}"},
    ],
)
def test_what_fits_or_may_fit(parameters: dict[str, Any]) -> None:
    check_parameters(SHIP, parameters, WHERE)


def test_a_node_that_says_nothing_takes_anything() -> None:
    check_parameters(ANY, {"any": [{"thing": "${inputs.x}"}]}, WHERE)


def test_an_unknown_parameter_gets_a_suggestion() -> None:
    error = refusal(SHIP, id=1, sped="fast")
    assert (error.field, error.code) == (f"{WHERE}.sped", "invalid_blueprint")
    assert "node ship has no parameter 'sped'; did you mean 'speed'?" in error.detail


def test_a_missing_parameter_is_named() -> None:
    error = refusal(SHIP, speed="fast")
    assert (error.field, "needs the parameter 'id'" in error.detail) == (WHERE, True)


@pytest.mark.parametrize(
    ("parameters", "path", "expected"),
    [
        ({"id": "seven"}, "id", "'seven' is not of type 'integer'"),
        ({"id": "no ${inputs.id}"}, "id", "is not of type 'integer'"),
        ({"id": True}, "id", "True is not of type 'integer'"),
        ({"id": 1, "speed": "warp"}, "speed", "'warp' is not one of"),
        ({"id": 1, "speed": 5}, "speed", "5 is not one of"),
    ],
)
def test_what_cannot_fit(parameters: dict[str, Any], path: str, expected: str) -> None:
    error = refusal(SHIP, **parameters)
    assert error.field == f"{WHERE}.{path}"
    assert expected in error.detail
    assert "node ship" in error.detail


def test_the_known_parts_of_a_list_are_checked() -> None:
    described = node("sum", numbers=INTEGERS)
    check_parameters(described, {"numbers": [1, "${inputs.a}", "${inputs.a}"]}, WHERE)
    assert refusal(described, numbers=["${inputs.a}", "one"]).field == f"{WHERE}.numbers[1]"
    assert refusal(described, numbers=[1, 1]).field == f"{WHERE}.numbers"


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]},
        {"not": {"properties": {"a": {"type": "string"}}}},
        {"if": {"properties": {"a": {"type": "string"}}}, "then": {"required": ["b"]}},
        {"const": {"a": 5}},
    ],
)
def test_what_depends_on_an_open_part_is_left_to_the_run(schema: dict[str, Any]) -> None:
    check_parameters(node("n", x=schema), {"x": {"a": "${inputs.a}"}}, WHERE)


@pytest.mark.parametrize("schema", [{"type": "no type"}, {"$ref": "#/nowhere"}, {"pattern": "("}])
def test_a_schema_that_is_none_is_refused_and_nothing_else_happens(schema: dict[str, Any]) -> None:
    error = refusal(NodeInfo(name="odd", parameters={"properties": {"x": schema}}), x="text")
    assert error.field == WHERE
    assert "node odd: the schema of its parameters is not valid" in error.detail


def test_a_schema_that_takes_too_long_is_given_up() -> None:
    doubling = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(24)}
    schema = {"$defs": {**doubling, "l24": {"type": "object"}}, "$ref": "#/$defs/l0"}
    with pytest.raises(BlueprintTooExpensive, match=r"node slow.* too much work") as refused:
        check_parameters(NodeInfo(name="slow", parameters=schema), {}, WHERE)
    assert (refused.value.field, refused.value.http_status) == (WHERE, 422)


def test_all_steps_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "CHECK_WORK", 10_000)
    described = NodeInfo(name="n", parameters={"properties": {"x": {"type": "integer"}}})
    for _ in range(20):
        check_parameters(described, {"x": 1}, WHERE)
    with check_budget(), pytest.raises(BlueprintTooExpensive):
        for _ in range(20):
            check_parameters(described, {"x": 1}, WHERE)


def test_a_dialect_inside_a_schema_does_not_lift_the_bounds() -> None:
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "integer"}
    check_parameters(node("n", x=dialect), {"x": "${inputs.x}"}, WHERE)
    assert refusal(node("n", x=dialect), x="text").field == f"{WHERE}.x"
