"""From a placement to messages: one link per remaining step, every one routed to the lane.

Timing: request-time and background-worker.
Model: sync.
Guarantee: best-effort; the message is a wake-up, the row the truth.
Failure: a chain that could not be sent is sent again by the worker that holds the placement.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from celery import chain, current_app, signature
from celery.canvas import Signature
from kombu.exceptions import OperationalError

from executions.blueprints.plan import Plan
from resources.placement import Placement

RUN_STEP = "executions.run_step"
PROBE_LANE = "executions.probe_lane"
WINDOW = 5  # a message carries the rest of its chain, so long blueprints go in windows that extend themselves
SHORT_TRY_SECONDS = 0.2  # for a caller that must not wait for the broker
ChainTail = list["Signature[Any]"]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainSpec:
    """The steps that a placement has left; only their ids and names go through the broker, no tenant's data."""

    placement: Placement
    plan: Plan
    first: str  # the path of the next step

    @property
    def paths(self) -> list[str]:
        """Return the steps of the next window; on the express lane one link runs all of them."""
        if self.plan.express:
            return [self.first]
        position = self.plan.step(self.first).position
        return [step.path for step in self.plan.steps[position : position + WINDOW]]


def links(spec: ChainSpec) -> ChainTail:
    """Return the immutable signatures of the next window."""
    placement = spec.placement
    suffix = " …" if spec.plan.express else ""
    return [
        signature(
            RUN_STEP,
            args=(placement.tenant_id, str(placement.execution_id), placement.epoch, path),
            immutable=True,
            # chain.apply_async(queue=…) would route the first link only.
            options={"queue": placement.lane, "shadow": f"{spec.plan.name}/{path}{suffix}"},
        )
        for path in spec.paths
    ]


def following(spec: ChainSpec) -> ChainTail:
    """Return the links in reverse, as `request.chain` of a Celery task has them: the next one is last."""
    return links(spec)[::-1]


def publish(spec: ChainSpec, *, timeout: float | None = None) -> bool:
    """Send the first link, which carries the others; false if the broker did not take it.

    The worker that holds the placement sends an unsent chain again. `timeout`: seconds for one single try; None leaves
    it to the broker's settings.
    """
    try:
        with _sending(timeout) as options:
            chain(*links(spec)).apply_async(**options)
    except OperationalError:
        logger.warning(
            "chain not sent; the worker will send it",
            extra={"event": "CHAIN_NOT_SENT", "execution_id": str(spec.placement.execution_id)},
        )
        return False
    return True


def send_probe(lane: str) -> None:
    """Send a worker's probe to its own lane, in one short try; raise kombu's OperationalError if it was not taken."""
    with _sending(SHORT_TRY_SECONDS) as options:
        signature(PROBE_LANE, options={"queue": lane}).apply_async(**options)


@contextmanager
def _sending(timeout: float | None) -> Iterator[dict[str, Any]]:
    """Yield the options of a message; a timeout means a connection of its own and no second try."""
    if timeout is None:
        yield {}
        return
    limits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    transport = {**current_app.conf.broker_transport_options, **limits}
    with current_app.connection_for_write(
        transport_options=transport, connect_timeout=timeout
    ) as connection:
        yield {"connection": connection, "retry": False}
