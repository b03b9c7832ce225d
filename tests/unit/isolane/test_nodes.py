"""isolane.nodes: the built-in nodes."""

from isolane.context import ExecutionContext, NodeContext
from isolane.node import default_registry
from isolane.nodes.data import data_map
from isolane.protocol import Open, Run


def test_data_map_returns_its_values() -> None:
    values = {"a": 1, "b": [{"c": None}]}
    run = Run(
        step="m",
        uses="data.map",
        parameters={},
        attempt=0,
        seed=1,
        timeout_s=1.0,
        idempotency_key="k",
    )
    execution = ExecutionContext(Open(execution_id="e", tenant_id="t", epoch=1))
    ctx = NodeContext(execution, run, deadline=0.0, emit=lambda frame: None)
    assert data_map(ctx, values=values) == values


def test_data_map_is_registered() -> None:
    node = default_registry.get("data.map")
    assert node is not None
    assert node.deterministic
