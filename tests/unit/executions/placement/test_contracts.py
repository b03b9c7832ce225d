"""Contracts: parameters and flags count, words and versions do not."""

from typing import Any

import pytest

from executions.placement.contracts import covers

FLAGS = {"idempotent": False, "deterministic": False, "uses_key": False}


def node(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object"}, **FLAGS, "summary": "Works.", **changes}


def test_more_nodes_and_other_words_cover() -> None:
    assert covers([node("a", summary="Better."), node("b")], [node("a")])
    assert covers([], [])


def test_a_flag_that_an_older_catalogue_leaves_out_is_false() -> None:
    older = node("a")
    del older["uses_key"], older["summary"]
    assert covers([node("a")], [older])
    assert not covers([node("a", uses_key=True)], [older])


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"type": "array"}},
        {"idempotent": True},
        {"deterministic": True},
        {"uses_key": True},
    ],
)
def test_a_changed_contract_does_not(changes: dict[str, Any]) -> None:
    assert not covers([node("a", **changes)], [node("a")])


def test_a_missing_node_does_not() -> None:
    assert not covers([node("b")], [node("a")])
