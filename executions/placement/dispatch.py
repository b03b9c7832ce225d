"""Placing runs and sending their chains.

Timing: request-time and background-worker. Model: sync. Guarantee: at-least-once; what is placed but not sent, the
worker that holds it sends. Failure: the broker's errors are logged and swallowed, the row is the truth; so are the
database's at request-time.
"""

import json
import logging
from typing import NamedTuple

from celery import current_app
from django.db import InterfaceError, OperationalError
from kombu import Connection

from executions.blueprints.plan import plan_of
from executions.placement.admission import Placed, admit
from executions.placement.chain import ChainSpec, publish_or_log
from executions.placement.run_scope import run_scope
from tenants.scope import login_scope
from tenants.statement import Statement

BOUNDED_SECONDS = 0.2
logger = logging.getLogger(__name__)


class RestRow(NamedTuple):
    """Where a run goes on, and its blueprint."""

    next_step: str
    content: str
    content_hash: str


# Locks:   nothing.
# Guard:   run without outcome or time to wait for, and a step is next.
# Writes:  nothing.
# Events:  none.
# Returns: where the run goes on; no row if there is nothing to send.
REST = Statement(
    "rest_of_chain",
    """
SELECT e.next_step, v.content, v.content_hash
FROM executions_execution e JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
WHERE e.id = %(execution)s::uuid AND e.outcome = '' AND e.next_step <> '' AND e.wake_at IS NULL""",
    parameters=("execution",),
    row=RestRow,
)


def admit_and_send(*, bounded: bool = False) -> None:
    """Give free slots to waiting runs and send their chains; from web with one short try, whose failure is no matter.

    What was asked for is committed by then, and workers admit, too: its caller must not hear of an error.
    """
    try:
        _admit_and_send(bounded=bounded)
    except (OperationalError, InterfaceError) as error:
        if not bounded:
            raise
        logger.warning("not admitted by web: %s", error, extra={"event": "NOT_ADMITTED"})


def _admit_and_send(*, bounded: bool) -> None:
    with login_scope():  # a request's own tenant must not be in the way of others'
        for placed in admit():
            if not send(placed, bounded=bounded):
                return  # the broker is away; each try would cost seconds, and the workers send the rest


def send(placed: Placed, *, bounded: bool = False) -> bool:
    """Send what is left of a run to the lane it is placed on; false if the broker did not take it."""
    spec = _spec(placed)
    if spec is None:
        return True
    return _publish_bounded(spec) if bounded else publish_or_log(spec)


def bounded_connection() -> Connection:
    """To the broker, for one short try: whoever asks must not wait for it."""
    limits = {"socket_timeout": BOUNDED_SECONDS, "socket_connect_timeout": BOUNDED_SECONDS}
    options = {**current_app.conf.broker_transport_options, **limits}
    return current_app.connection_for_write(
        transport_options=options, connect_timeout=BOUNDED_SECONDS
    )


def _publish_bounded(spec: ChainSpec) -> bool:
    with bounded_connection() as connection:
        return publish_or_log(spec, connection=connection, retry=False)


def _spec(placed: Placed) -> ChainSpec | None:
    with run_scope(placed.tenant_id):
        rest = REST.fetch({"execution": placed.execution_id})
    if rest is None:
        return None
    return ChainSpec(
        tenant_id=placed.tenant_id,
        execution_id=placed.execution_id,
        epoch=placed.epoch,
        lane=placed.lane,
        plan=plan_of(rest.content_hash, json.loads(rest.content)),
        first=rest.next_step,
    )
