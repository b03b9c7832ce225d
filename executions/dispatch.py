"""Placing runs and sending their chains.

Timing: request-time and background-worker. Model: sync. Guarantee: at-least-once; what is placed but not sent, the
worker that holds it sends. Failure: the broker's errors are logged and swallowed, the row is the truth.
"""

import logging
from uuid import UUID

from celery import current_app
from kombu.exceptions import OperationalError

from executions.blueprint.plan import plan
from executions.chain import ChainSpec, publish
from executions.models import Execution
from executions.placement.admission import Placed, admit
from executions.scope import run_scope
from tenants.scope import login_scope

BOUNDED_SECONDS = 0.2
logger = logging.getLogger(__name__)


def admit_and_send(*, bounded: bool = False) -> None:
    """Give free slots to waiting runs and send their chains; from web with one short try."""
    with login_scope():  # a request's own tenant must not be in the way of others'
        for placed in admit():
            if not send(placed, bounded=bounded):
                return  # the broker is away; each try would cost seconds, and the workers send the rest


def send(placed: Placed, *, bounded: bool = False) -> bool:
    """Send what is left of a run to the lane it is placed on; false if the broker did not take it."""
    spec = _spec(placed)
    if spec is None:
        return True
    try:
        if bounded:
            _publish_bounded(spec)
        else:
            publish(spec)
    except OperationalError:
        logger.warning(
            "chain not sent; the worker will send it",
            extra={"event": "CHAIN_NOT_SENT", "execution_id": str(placed.execution_id)},
        )
        return False
    return True


def _publish_bounded(spec: ChainSpec) -> None:
    limits = {"socket_timeout": BOUNDED_SECONDS, "socket_connect_timeout": BOUNDED_SECONDS}
    options = {**current_app.conf.broker_transport_options, **limits}
    with current_app.connection_for_write(
        transport_options=options, connect_timeout=BOUNDED_SECONDS
    ) as connection:
        publish(spec, connection=connection, retry=False)


def _spec(placed: Placed) -> ChainSpec | None:
    with run_scope(placed.tenant_id):
        run = _unfinished(placed.execution_id)
    if run is None:
        return None
    planned = plan(run.blueprint_version.content)
    return ChainSpec(
        tenant_id=placed.tenant_id,
        execution_id=placed.execution_id,
        epoch=placed.epoch,
        lane=placed.lane,
        blueprint=planned.name,
        paths=[step.path for step in planned.from_path(run.next_step)],
    )


def _unfinished(execution_id: UUID) -> Execution | None:
    runs = Execution.objects.select_related("blueprint_version").filter(pk=execution_id, outcome="")
    return runs.exclude(next_step="").first()
