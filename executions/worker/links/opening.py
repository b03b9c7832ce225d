"""Open a context: grant its resources, start its runtime, open it there.

A half-opened context is closed like any other.

Timing: background-worker; each remote server has a few seconds to answer.
Model: sync, in the thread of the link that claimed the step.
Guarantee: at-most-once; a runtime is started once in a context, and opened only while the lease is fresh.
Failure: returned as the step's; if the placement is over or the database away, the context is lost.
"""

import logging
from dataclasses import replace

from django.db import Error as DatabaseError

from executions.semantics.attempt import Failure
from executions.worker.boot import WorkerBoot
from executions.worker.links.context import OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.resources.granting import PlacementOver, ResourceNotGranted, grant_resources
from executions.worker.resources.tracking import track_report
from isolane.results import Code
from resources.runtimes.base import RunIdentity, RuntimeStartError
from tenants.selectors import schema_of

logger = logging.getLogger(__name__)


def open_context(boot: WorkerBoot, context: OpenContext, seconds_left: float) -> Failure | None:
    """Open a context unless an earlier link has; returns the failure of the step, if any.

    `seconds_left`: for which the run may still hold its slot. None with a lost context means that no step may begin.
    """
    if context.has_runtime:
        return None
    identity = RunIdentity(
        tenant=schema_of(context.placement.tenant_id),
        user_id=context.run.requested_by,
        request_id=context.run.request_id,
    )
    try:
        _open(boot, context, identity, seconds_left)
    except ResourceNotGranted as refused:
        logger.warning(
            "not granted: %s",
            refused.message,
            extra={"event": "RESOURCE_NOT_GRANTED", **log_ids(context.placement)},
        )
        return Failure(code=refused.code, message=refused.message)
    except PlacementOver:
        context.lose()  # cancelled meanwhile, or ended by another worker: the loop sees to it
    except RuntimeStartError as error:
        if context.runtime is not None and context.runtime.lost:
            context.lose()
            return None
        # The reason is for the operator: it may name paths and packages of the machine.
        logger.error("runtime not started: %s", error, extra={"event": "RUNTIME_NOT_STARTED"})  # noqa: TRY400 - no trace wanted
        message = "The runtime could not be started; the worker's log says why."
        return Failure(code=Code.RESOURCE_ERROR, message=message)
    except DatabaseError:
        # Not a failure of the step: nothing of it has begun, and the loop hands it back.
        context.lose()
        raise
    except Exception:
        # Issuers and resolvers may be third-party code.
        logger.exception("context not opened", extra={"event": "CONTEXT_NOT_OPENED"})
        message = "The context could not be opened; the worker's log says why."
        return Failure(code=Code.UNKNOWN_ERROR, message=message)
    return None


def _open(
    boot: WorkerBoot, context: OpenContext, identity: RunIdentity, seconds_left: float
) -> None:
    run = context.run
    grants = grant_resources(context, seconds_left=seconds_left)
    context.tracker.set_grants(grants, steps=[step.path for step in run.plan.steps])
    runtime = boot.backends[run.isolation].start(
        context.placement,
        identity=identity,
        limits=replace(run.limits, seconds=seconds_left),
        grants=grants,
        on_resource=lambda frame: track_report(context, frame),
        on_connection=context.connections.add,
    )
    context.attach(runtime)
    if not boot.lease_is_fresh():
        context.lose()  # granting may have taken long: another worker may have the run by now
        return
    runtime.open()
