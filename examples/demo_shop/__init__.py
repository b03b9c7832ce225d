"""A little shop: the nodes of examples/order.yaml."""

import time
from decimal import Decimal
from typing import Any

from isolane import NodeContext, StepError, node

_GOODS = {"tea": "4.20", "cups": "12.00", "kettle": "39.90", "honey": "6.50"}
_CUSTOMERS = ("Ada", "Grace", "Edsger", "Barbara")


@node("shop.fetch_order", deterministic=True)
def fetch_order(ctx: NodeContext, *, order_id: int) -> dict[str, Any]:
    """Look an order up; the same seed finds the same order."""
    _work(ctx, f"looking up order {order_id}", seconds=0.4)
    goods = ctx.random.sample(sorted(_GOODS), k=2)
    items = [{"name": name, "quantity": ctx.random.randint(1, 3)} for name in goods]
    return {"order_id": order_id, "customer": ctx.random.choice(_CUSTOMERS), "items": items}


@node("shop.price", idempotent=True, deterministic=True)
def price(ctx: NodeContext, *, items: list[dict[str, Any]]) -> dict[str, str]:
    """Add an order up; money is a string, because floats round."""
    _work(ctx, f"pricing {len(items)} items", seconds=0.3)
    total = sum((Decimal(_GOODS[item["name"]]) * item["quantity"] for item in items), Decimal())
    return {"total": str(total)}


@node("shop.charge", idempotent=True)
def charge(ctx: NodeContext, *, customer: str, total: str) -> dict[str, str]:
    """Charge a customer; the bank knows a repeated charge by its key."""
    if Decimal(total) <= 0:
        raise StepError("POLICY_VIOLATION", f"cannot charge {total}")
    _work(ctx, f"charging {customer} {total}", seconds=0.6)
    return {"charge_id": f"charge-{ctx.idempotency_key}", "charged": total}


@node("shop.ship", idempotent=True)
def ship(ctx: NodeContext, *, order_id: int, charge_id: str) -> dict[str, str]:
    """Send a paid order on its way."""
    print(f"order {order_id} is paid with {charge_id}")  # noqa: T201 - lands in the step's log
    _work(ctx, "packing", seconds=0.4)
    return {"tracking": f"TRACK-{ctx.random.randrange(10**8):08d}"}


def _work(ctx: NodeContext, message: str, *, seconds: float) -> None:
    """Take a while in visible pieces, and stop early when cancelled."""
    pieces = 4
    for done in range(1, pieces + 1):
        if ctx.cancelled:
            raise StepError("CANCELLED", "stopped on request")
        time.sleep(seconds / pieces)
        ctx.progress(done / pieces, message)
