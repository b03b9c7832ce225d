"""From a placement to messages: one link per remaining step, every one routed to the lane.

Timing: request-time and background-worker. Model: sync. Guarantee: best-effort; the message is a wake-up, the row the
truth. Failure: a message that could not be sent is sent again by the worker that holds the placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from celery import chain, signature
from celery.canvas import Signature

RUN_STEP = "executions.run_step"
WINDOW = 10  # a message carries the rest of its chain, so long blueprints go in windows that extend themselves


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainSpec:
    """Ids and names only: nothing of a tenant's data goes through the broker."""

    tenant_id: int
    execution_id: UUID
    epoch: int
    lane: str
    blueprint: str
    paths: Sequence[str]


def links(spec: ChainSpec) -> "list[Signature[Any]]":
    """The immutable signatures of the next window."""
    return [
        signature(
            RUN_STEP,
            args=(spec.tenant_id, str(spec.execution_id), spec.epoch, path),
            immutable=True,
            # chain.apply_async(queue=…) would route the first link only.
            options={"queue": spec.lane, "shadow": f"{spec.blueprint}/{path}"},
        )
        for path in spec.paths[:WINDOW]
    ]


def publish(spec: ChainSpec, **options: Any) -> None:
    """Send the first link, which carries the others; raises kombu's OperationalError if it could not."""
    if spec.paths:
        chain(*links(spec)).apply_async(**options)
