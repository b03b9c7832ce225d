"""Reports from a runtime: what becomes of the handles of an open context, tracked and logged.

Of the last second of a runtime that is killed, reports on reuse and disposal may be missing.

Timing: background-worker.
Model: sync; from whichever thread uses the runtime or closes the context.
Guarantee: every allocation, reuse, disposal and failure is one log line with both ids.
Failure: a report that cannot be true is a ProtocolError, which ends the runtime.
"""

import logging
from dataclasses import replace

from executions.semantics.resource_tracker import TrackedResource
from executions.worker.links.context import OpenContext
from isolane.protocol import Resource

logger = logging.getLogger(__name__)


def track_report(context: OpenContext, frame: Resource) -> None:
    """Record and log a runtime's report of a handle; ProtocolError if it cannot be true."""
    if frame.error:
        frame = replace(frame, error=context.run.memory.masker.mask(frame.error))
    resource = context.tracker.report(frame)
    failed = frame.event == "failed" or bool(frame.error)
    log_resource(context, "failed" if failed else frame.event, resource, step=frame.step)


def track_runtime_end(context: OpenContext) -> None:
    """Record and log that the runtime is gone, and every open handle with it."""
    for resource in context.tracker.end_killed():
        log_resource(context, "killed", resource)


def log_resource(
    context: OpenContext, event: str, resource: TrackedResource, *, step: str = ""
) -> None:
    """Write one log line, in the words of NORP-006."""
    error = resource.error_text
    logger.log(
        logging.WARNING if event == "failed" else logging.INFO,
        "resource %s %s%s",
        resource.name,
        event,
        f": {error}" if error else "",
        extra={
            **context.log_ids,
            "event": f"RESOURCE_{event.upper()}",
            "resource": resource.name,
            "resource_type": resource.type,
            "resource_id": resource.resource_id,
            "step": step or resource.step or None,
        },
    )
