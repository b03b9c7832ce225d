"""Descriptions of nodes for checking a blueprint. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeInfo:
    """A node as a catalogue describes it."""

    name: str
    parameters: Mapping[str, Any]  # JSON Schema
    idempotent: bool = False
    deterministic: bool = False
    uses_key: bool = False  # hands the idempotency key to a remote server that honours it
    summary: str = ""


def nodes_of(described: Iterable[Mapping[str, Any]]) -> dict[str, NodeInfo]:
    """Return the nodes of a stored catalogue by name; older catalogues describe less."""
    return {
        node["name"]: NodeInfo(
            name=node["name"],
            parameters=node["parameters"],
            idempotent=node["idempotent"],
            deterministic=node["deterministic"],
            uses_key=node.get("uses_key", False),
            summary=node.get("summary", ""),
        )
        for node in described
    }
