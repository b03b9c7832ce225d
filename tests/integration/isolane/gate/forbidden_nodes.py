"""The nodes of a step that tries to reach what it may not."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from isolane import NodeContext, node
from tests.integration.isolane.gate.forbidden_ways.way import outcome
from tests.integration.isolane.gate.forbidden_ways.ways import WAYS

_AT_ONCE = 24  # they wait most of the time


@node("forbidden.try")
def try_ways(ctx: NodeContext, *, names: list[str], facts: dict[str, Any]) -> dict[str, str]:
    """Try all of these ways, and return their outcomes."""
    return tried(names, facts)


def tried(names: list[str], facts: dict[str, Any]) -> dict[str, str]:
    """Return the outcomes of these ways, by their names."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        outcomes = pool.map(lambda name: outcome(WAYS[name], facts), names)
        return dict(zip(names, outcomes, strict=True))
