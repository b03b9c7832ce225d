"""executions.blueprints.validation.references: what nothing can meet is refused, wherever it stands."""

from typing import Any

import pytest

from executions.blueprints.errors import BadReference, InvalidBlueprint
from executions.blueprints.plan import plan
from executions.blueprints.schema.inputs import known_inputs
from executions.blueprints.validation.references import check_references


def check(*steps: dict[str, Any], **fields: Any) -> None:
    """Check a document with steps s0, s1, … that have these fields."""
    written = [{"key": f"s{i}", "uses": "work", **given} for i, given in enumerate(steps)]
    document = {"name": "flow", "steps": written, **fields}
    check_references(plan(document), known_inputs(fields.get("inputs", {})))


def recovery(**parameters: Any) -> dict[str, Any]:
    return {"on_failure": "recover", "recover": {"uses": "work", "with": parameters}}


def test_what_comes_before_may_be_referred_to_everywhere() -> None:
    check(
        {"with": {"x": "${inputs.a}"}},
        {
            "with": {"y": ["${steps.s0.out}", "${inputs.steps.s9}", "${vars.v}"]},
            "when": "${steps.s0.ok}",
            "idempotency_key": "k-${steps.s0.id}-${inputs.a}",
            **recovery(why="${error.code}: ${steps.s0.out}"),
        },
        outputs={"first": "${steps.s0.out}", "last": "${steps.s1}"},
    )


@pytest.mark.parametrize("key", ["s1", "s2", "nowhere"])
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"with": {"x": "${steps.KEY.out}"}}, "with.x"),
        ({"with": {"x": "${length(steps.KEY) > `1`}"}}, "with.x"),
        ({"when": "${!(steps.KEY.out)}"}, "when"),
        ({"idempotency_key": "k${steps.KEY.out}"}, "idempotency_key"),
        (recovery(a=["${steps.KEY.out}"]), "recover.with.a[0]"),
    ],
)
def test_itself_a_later_and_an_unknown_step_are_refused(
    key: str, fields: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidBlueprint, match=f"needs step '{key}'") as refused:
        check({}, _replaced(fields, key), {})
    assert refused.value.field == f"$.steps[1].{path}"
    assert refused.value.detail.startswith(refused.value.field)


def test_a_mistyped_step_gets_a_suggestion() -> None:
    with pytest.raises(InvalidBlueprint, match=r"does not exist; did you mean 's0'\?"):
        check({}, {"with": {"x": "${steps.s00.out}"}})


def test_outputs_refer_to_steps_that_there_are() -> None:
    with pytest.raises(InvalidBlueprint, match="needs step 'other'") as refused:
        check({}, outputs={"a": {"b": "${steps.other}"}})
    assert refused.value.field == "$.outputs.a.b"


def test_the_failure_is_known_in_a_recovery_only() -> None:
    for fields in ({"with": {"x": "${error.code}"}}, {"when": "${error.code}"}):
        with pytest.raises(BadReference, match="must begin with inputs, steps or vars"):
            check(fields)


@pytest.mark.parametrize(
    "text", ["${secrets.all}", "${inputs..a}", "${inputs.{a: b}}", "to ${", "$${inputs.a}"]
)
def test_a_bad_reference_is_refused_with_its_path(text: str) -> None:
    with pytest.raises(BadReference) as refused:
        check({}, {"with": {"list": [1, {"x": text}]}})
    assert refused.value.field == "$.steps[1].with.list[1].x"
    assert refused.value.detail.startswith(refused.value.field)


@pytest.mark.parametrize(
    "when", ["", "true", "${inputs.a} ", "${inputs.a}${inputs.b}", "not ${inputs.a}"]
)
def test_a_condition_is_exactly_one_reference(when: str) -> None:
    with pytest.raises(InvalidBlueprint, match="exactly one reference") as refused:
        check({"when": when})
    assert refused.value.field == "$.steps[0].when"


def test_a_key_cannot_be_a_reference() -> None:
    with pytest.raises(BadReference, match="a key holds") as refused:
        check({"with": {"a": {"${inputs.a}": 1}}})
    assert refused.value.field == "$.steps[0].with.a"


def test_a_step_has_so_many_references_and_no_more() -> None:
    most = {"x": ["${inputs.a}${inputs.b}"] * 100}
    check({"with": most}, {"with": most})
    with pytest.raises(BadReference, match="at most 200 references") as refused:
        check({"with": most | {"y": "${inputs.c}"}})
    assert refused.value.field == "$.steps[0].with"
    with pytest.raises(BadReference, match="at most 200 references"):
        check({"with": most, "when": "${inputs.c}"})


CLOSED = {"properties": {"name": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"with": {"x": ["${inputs.nmae}"]}}, "$.steps[0].with.x[0]"),
        ({"when": "${inputs.name && inputs.nmae}"}, "$.steps[0].when"),
        (recovery(x="a ${inputs.nmae.first}"), "$.steps[0].recover.with.x"),
    ],
)
def test_an_input_that_no_run_can_have_is_refused(fields: dict[str, Any], path: str) -> None:
    check(fields)
    with pytest.raises(
        InvalidBlueprint, match=r"the schema does not allow; did you mean 'name'\?"
    ) as refused:
        check(fields, inputs=CLOSED)
    assert refused.value.field == path


def test_outputs_need_inputs_that_there_are() -> None:
    check(
        {"with": {"x": "${inputs.name} ${inputs}"}}, inputs=CLOSED, outputs={"a": "${inputs.name}"}
    )
    with pytest.raises(InvalidBlueprint, match="needs input 'other'") as refused:
        check({}, inputs=CLOSED, outputs={"a": "${inputs.other}"})
    assert refused.value.field == "$.outputs.a"


def test_a_label_is_no_reference() -> None:
    check({}, labels={"team": "$5"})
    with pytest.raises(InvalidBlueprint, match="a label holds no references") as refused:
        check({}, labels={"team": "${inputs.team}"})
    assert refused.value.field == "$.labels.team"


def _replaced(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(inner, key) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, key) for inner in value]
    return value.replace("KEY", key)
