"""Runs without a worker: a catalogue as a worker would have stored it, a blueprint, submissions."""

from executions.placement.registry import store_catalogue
from executions.services.publishing import publish
from executions.submission.submit import RunRequest, submit
from isolane.protocol import NodeCatalogue, NodeDescription
from tenants.scope import TenantRef, platform_scope, tenant_scope

NODES = ("shop.fetch_order", "shop.price", "shop.charge", "shop.ship")
BLUEPRINT = {
    "name": "order",
    "inputs": {
        "type": "object",
        "required": ["order_id"],
        "properties": {"order_id": {"type": "integer", "minimum": 1}},
    },
    "steps": [{"key": "fetch", "uses": "shop.fetch_order"}, {"key": "ship", "uses": "shop.ship"}],
}


def offer_nodes() -> str:
    """Make known which nodes there are, so that runs can be submitted; returns the version."""
    nodes = tuple(
        NodeDescription(name=name, parameters={}, idempotent=True, deterministic=True)
        for name in NODES
    )
    with platform_scope():
        return store_catalogue(NodeCatalogue(nodes=nodes, packages={}, python="3.11"))


def publish_order(*tenants: TenantRef) -> None:
    for tenant in tenants:
        with tenant_scope(tenant):
            publish(BLUEPRINT)


def submit_order(tenant: TenantRef, order_id: int = 1) -> str:
    run = submit(
        tenant, RunRequest(blueprint="order", inputs={"order_id": order_id}, requested_by="tests")
    ).execution
    return run.public_id
