"""Contracts of nodes: the parameters and flags that a run relies on, not versions and texts. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

_CONTRACT = ("parameters", "idempotent", "deterministic", "uses_key")
Nodes = Iterable[Mapping[str, Any]]  # as a catalogue stores them


def covers(offered: Nodes, wanted: Nodes) -> bool:
    """Return True if every wanted node is offered, with the same parameters and flags."""
    contracts = {node["name"]: _contract(node) for node in offered}
    return all(contracts.get(node["name"]) == _contract(node) for node in wanted)


def _contract(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a node that its callers depend on; older catalogues leave out flags that are false."""
    return {name: node.get(name, False) for name in _CONTRACT}
