"""Dispatch: place waiting runs and send their chains.

Timing: request-time and background-worker.
Model: sync.
Guarantee: at-least-once; a placement that is not sent is sent by the worker that holds it.
Failure: the row is the truth: the broker's errors are logged and swallowed, for requests also the database's.
"""

import json
import logging
from typing import NamedTuple

from django.db import InterfaceError, OperationalError

from executions.blueprints.plan import plan_of
from executions.placement.admission import admit
from executions.placement.chain import SHORT_TRY_SECONDS, ChainSpec, publish
from executions.placement.run_scope import run_scope
from resources.placement import Placement
from tenants.scope import login_scope
from tenants.statement import Statement

logger = logging.getLogger(__name__)


class RestRow(NamedTuple):
    """The next step of a run, and its blueprint."""

    next_step: str
    content: str
    content_hash: str


# Locks:   nothing.
# Guard:   the run has no outcome and no time to wait for, and a step is next.
# Writes:  nothing.
# Events:  none.
# Returns: the next step; no row if there is nothing to send.
REMAINING = Statement(
    "rest_of_chain",
    """
SELECT e.next_step, v.content, v.content_hash
FROM executions_execution e JOIN executions_blueprintversion v ON v.id = e.blueprint_version_id
WHERE e.id = %(execution)s::uuid AND e.outcome = '' AND e.next_step <> '' AND e.wake_at IS NULL""",
    parameters=("execution",),
    row=RestRow,
)


def admit_and_send(*, bounded: bool = False) -> None:
    """Give free slots to waiting runs and send their chains.

    `bounded`, for requests: one short try, and a failure is only logged. The caller's own work is committed by then,
    and workers admit, too.
    """
    try:
        with login_scope():  # not the caller's tenant: the runs may be other tenants'
            for placement in admit():
                if not send(placement, timeout=SHORT_TRY_SECONDS if bounded else None):
                    return  # the broker is away: each try would cost time, and the workers send the rest
    except (OperationalError, InterfaceError) as error:
        if not bounded:
            raise
        logger.warning("not admitted by web: %s", error, extra={"event": "NOT_ADMITTED"})


def send(placement: Placement, *, timeout: float | None = None) -> bool:
    """Send the steps that a placement has left to its lane; false if the broker did not take them."""
    with run_scope(placement.tenant_id):
        rest = REMAINING.fetch({"execution": placement.execution_id})
    if rest is None:
        return True
    plan = plan_of(rest.content_hash, json.loads(rest.content))
    return publish(ChainSpec(placement=placement, plan=plan, first=rest.next_step), timeout=timeout)
