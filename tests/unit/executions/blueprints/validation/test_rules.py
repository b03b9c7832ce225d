"""executions.blueprints.validation.rules: a document is checked against the nodes that there are."""

from typing import Any

import pytest

from executions.blueprints.errors import BadReference, InvalidBlueprint
from executions.blueprints.validation.nodes import NodeInfo, nodes_of
from executions.blueprints.validation.rules import check_document
from tests.unit.executions.blueprints.nodes import NODES


def flow(**fields: Any) -> dict[str, Any]:
    return {
        "name": "flow",
        "steps": [{"key": "a", "uses": "work"}, {"key": "b", "uses": "work", **fields}],
    }


RECOVERY = {"on_failure": "recover", "recover": {"uses": "ship", "with": {"id": "${error.code}"}}}


def test_what_can_run() -> None:
    check_document(flow(**RECOVERY), NODES)


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        ({"uses": "wrok"}, "uses", "there is no node 'wrok'; did you mean 'work'?"),
        ({"uses": "absent"}, "uses", "known are keyed, safe, ship, sure, work."),
        ({"uses": "ship"}, "with", "needs the parameter 'id'"),
        ({"guarantee": "idempotent"}, "guarantee", "cannot give"),
        ({"retry": {}}, "retry", "on_failure: retry only"),
        ({**RECOVERY, "recover": {"uses": "shop"}}, "recover.uses", "did you mean 'ship'?"),
        ({**RECOVERY, "recover": {"uses": "ship"}}, "recover.with", "needs the parameter 'id'"),
    ],
)
def test_what_cannot(fields: dict[str, Any], path: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        check_document(flow(**fields), NODES)
    assert refused.value.field == f"$.steps[1].{path}"
    assert expected in refused.value.detail


def test_before_any_worker_has_described_its_nodes_all_are_taken() -> None:
    check_document(flow(uses="absent", guarantee="exactly_once"), {})
    with pytest.raises(BadReference):
        check_document(flow(when="${nothing.there}"), {})


def test_an_old_catalogue_says_less_of_a_node() -> None:
    old = {"name": "n", "parameters": {}, "idempotent": True, "deterministic": False}
    new = {**old, "name": "m", "uses_key": True, "summary": "Does it."}
    assert nodes_of([old, new]) == {
        "n": NodeInfo(name="n", parameters={}, idempotent=True),
        "m": NodeInfo(name="m", parameters={}, idempotent=True, uses_key=True, summary="Does it."),
    }
