"""executions.services.blueprints.check_steps: unknown nodes and references that nothing can meet are refused."""

from typing import Any

import pytest

from executions.blueprint.errors import BadReference, InvalidBlueprint
from executions.services.blueprints import check_steps


def flow(*parameters: dict[str, Any]) -> dict[str, Any]:
    """A document with steps s0, s1, … that have these parameters."""
    steps = [{"key": f"s{i}", "uses": "work", "with": given} for i, given in enumerate(parameters)]
    return {"name": "flow", "steps": steps}


def test_earlier_steps_and_inputs_may_be_referred_to() -> None:
    check_steps(
        flow({"x": "${inputs.a}"}, {"y": ["${steps.s0.out}", "${inputs.steps.s9}"]}), {"work"}
    )


def test_an_unknown_node_is_refused_with_those_known() -> None:
    with pytest.raises(InvalidBlueprint, match="'work'; known are a, b") as refused:
        check_steps(flow({}), {"b", "a"})
    assert refused.value.field == "$.steps[0]"


def test_before_any_worker_has_described_its_nodes_all_are_taken() -> None:
    check_steps(flow({}), set())


@pytest.mark.parametrize("key", ["s1", "s2", "nowhere"])
def test_itself_a_later_and_an_unknown_step_are_refused(key: str) -> None:
    with pytest.raises(InvalidBlueprint, match=f"needs step '{key}'") as refused:
        check_steps(flow({}, {"x": f"${{steps.{key}.out}}"}, {}), {"work"})
    assert refused.value.field == "$.steps[1].with.x"


@pytest.mark.parametrize(
    "text", ["${secrets.all}", "${inputs..a}", "${inputs.{a: b}}", "to ${", "$${inputs.a}"]
)
def test_a_bad_reference_is_refused_with_its_path(text: str) -> None:
    with pytest.raises(BadReference) as refused:
        check_steps(flow({}, {"list": [1, {"x": text}]}), {"work"})
    assert refused.value.field == "$.steps[1].with.list[1].x"
    assert refused.value.detail.startswith(refused.value.field)


def test_a_key_cannot_be_a_reference() -> None:
    with pytest.raises(BadReference, match="a key holds") as refused:
        check_steps(flow({"a": {"${inputs.a}": 1}}), {"work"})
    assert refused.value.field == "$.steps[0].with.a"


def test_a_step_has_so_many_references_and_no_more() -> None:
    check_steps(flow({"x": ["${inputs.a}${inputs.b}"] * 100}), {"work"})
    with pytest.raises(BadReference, match="at most 200 references") as refused:
        check_steps(flow({"x": ["${inputs.a}${inputs.b}"] * 100, "y": "${inputs.c}"}), {"work"})
    assert refused.value.field == "$.steps[0].with"
