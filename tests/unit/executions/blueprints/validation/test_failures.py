"""Modes and guarantees that contradict each other, or the node, are refused."""

from typing import Any

import pytest

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.plan import Guarantee, plan
from executions.blueprints.validation.failures import check_failures, check_guarantee
from executions.blueprints.validation.nodes import NodeInfo
from tests.unit.executions.blueprints.nodes import ANY, DETERMINISTIC, IDEMPOTENT, KEYED, NODES

RECOVER = {"uses": "work"}


def check(**fields: Any) -> None:
    written = {"key": "a", "uses": "work", **fields}
    check_failures(plan({"name": "flow", "steps": [written]}).steps[0], written)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"on_failure": "retry"},
        {"on_failure": "retry", "retry": {"attempts": 2, "then": "continue"}},
        {"on_failure": "retry", "retry": {"then": "recover"}, "recover": RECOVER},
        {"on_failure": "recover", "recover": RECOVER},
        {"on_failure": "recover", "recover": RECOVER, "guarantee": "at_most_once"},
        {"on_failure": "continue", "guarantee": "best_effort"},
    ],
)
def test_what_goes_together(fields: dict[str, Any]) -> None:
    check(**fields)


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        ({"retry": {"attempts": 2}}, "retry", "with on_failure: retry only"),
        ({"retry": {}, "on_failure": "continue"}, "retry", "with on_failure: retry only"),
        ({"on_failure": "retry", "guarantee": "at_most_once"}, "on_failure", "never runs again"),
        ({"on_failure": "recover"}, "on_failure", "add the recovery node"),
        (
            {"on_failure": "retry", "retry": {"then": "recover"}},
            "retry.then",
            "add the recovery node",
        ),
        ({"recover": RECOVER}, "recover", "never used"),
        ({"recover": RECOVER, "on_failure": "retry"}, "recover", "never used"),
    ],
)
def test_what_does_not(fields: dict[str, Any], path: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint, match=expected) as refused:
        check(**fields)
    assert refused.value.field == f"$.steps[0].{path}"


ABLE = {
    Guarantee.EXACTLY_ONCE: KEYED,
    Guarantee.IDEMPOTENT: IDEMPOTENT,
    Guarantee.DETERMINISTIC: DETERMINISTIC,
}


@pytest.mark.parametrize("guarantee", Guarantee)
@pytest.mark.parametrize("node", [node for node in NODES.values() if node.name != "ship"])
def test_a_node_gives_what_it_declares(guarantee: Guarantee, node: NodeInfo) -> None:
    step = plan(
        {"name": "flow", "steps": [{"key": "a", "uses": node.name, "guarantee": guarantee.value}]}
    ).steps[0]
    if ABLE.get(guarantee, node) is node:
        check_guarantee(step, node)
        return
    with pytest.raises(
        InvalidBlueprint, match=f"is {guarantee}, which node {node.name} cannot"
    ) as no:
        check_guarantee(step, node)
    assert no.value.field == "$.steps[0].guarantee"


def test_a_refusal_says_what_the_node_must_declare() -> None:
    written = {"key": "a", "uses": "work", "guarantee": "exactly_once"}
    with pytest.raises(InvalidBlueprint, match="does not declare uses_key=True"):
        check_guarantee(plan({"name": "flow", "steps": [written]}).steps[0], ANY)
