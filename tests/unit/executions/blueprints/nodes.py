"""Nodes that the tests of blueprints know."""

from typing import Any

from executions.blueprints.validation.nodes import NodeInfo


def node(name: str, *required: str, **properties: Any) -> NodeInfo:
    """A node with these parameters by name and schema, that promises nothing."""
    return NodeInfo(
        name=name,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


ANY = NodeInfo(name="work", parameters={})
KEYED = NodeInfo(name="keyed", parameters={}, uses_key=True)
IDEMPOTENT = NodeInfo(name="safe", parameters={}, idempotent=True)
DETERMINISTIC = NodeInfo(name="sure", parameters={}, deterministic=True)
SHIP = node("ship", "id", id={"type": "integer"}, speed={"enum": ["slow", "fast"]})
NODES = {each.name: each for each in (ANY, KEYED, IDEMPOTENT, DETERMINISTIC, SHIP)}
