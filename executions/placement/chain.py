"""From a placement to messages: one link per remaining step, every one routed to the lane.

Timing: request-time and background-worker. Model: sync. Guarantee: best-effort; the message is a wake-up, the row the
truth. Failure: a message that could not be sent is sent again by the worker that holds the placement.
"""

import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from celery import chain, signature
from celery.canvas import Signature
from kombu.exceptions import OperationalError

from executions.blueprints.plan import Plan

RUN_STEP = "executions.run_step"
PROBE = "executions.echo"
WINDOW = 5  # a message carries the rest of its chain, so long blueprints go in windows that extend themselves
ChainTail = list["Signature[Any]"]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainSpec:
    """What is left of a run; only ids and names of it go through the broker, nothing of a tenant's data."""

    tenant_id: int
    execution_id: UUID
    epoch: int
    lane: str
    plan: Plan
    first: str  # the path of the next step

    @property
    def paths(self) -> list[str]:
        """The steps of the next window; on the express lane one link runs all of them."""
        if self.plan.express:
            return [self.first]
        position = self.plan.step(self.first).position
        return [step.path for step in self.plan.steps[position : position + WINDOW]]


def links(spec: ChainSpec) -> ChainTail:
    """The immutable signatures of the next window."""
    suffix = " …" if spec.plan.express else ""
    return [
        signature(
            RUN_STEP,
            args=(spec.tenant_id, str(spec.execution_id), spec.epoch, path),
            immutable=True,
            # chain.apply_async(queue=…) would route the first link only.
            options={"queue": spec.lane, "shadow": f"{spec.plan.name}/{path}{suffix}"},
        )
        for path in spec.paths
    ]


def following(spec: ChainSpec) -> ChainTail:
    """The same as a task's request has the rest of its chain: the next one last."""
    return links(spec)[::-1]


def publish(spec: ChainSpec, **options: Any) -> None:
    """Send the first link, which carries the others; raises kombu's OperationalError if it could not."""
    chain(*links(spec)).apply_async(**options)


def publish_or_log(spec: ChainSpec, **options: Any) -> bool:
    """Send it; false if the broker did not take it, since the worker's loop will send it again."""
    try:
        publish(spec, **options)
    except OperationalError:
        logger.warning(
            "chain not sent; the worker will send it",
            extra={"event": "CHAIN_NOT_SENT", "execution_id": str(spec.execution_id)},
        )
        return False
    return True


def send_probe(lane: str, **options: Any) -> None:
    """Send what a worker is to hear itself; raises kombu's OperationalError if it could not."""
    signature(PROBE, options={"queue": lane}).apply_async(**options)
