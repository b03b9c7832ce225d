"""The Celery tasks: one link of a chain, and the probe of a lane.

Timing: background-worker.
Model: sync (a pool thread).
Guarantee: as the step's; its message is gone on receipt, since PostgreSQL is the truth.
Failure: a code-only exception, or Ignore for a duplicate; never a Celery retry.
"""

import logging
from collections.abc import Callable
from typing import Any

from celery import Task, shared_task
from celery.exceptions import Ignore

from executions.placement.chain import PROBE_LANE, RUN_STEP
from executions.worker.links.runner import StepFailed
from executions.worker.worker import current

logger = logging.getLogger(__name__)


@shared_task(name=RUN_STEP, bind=True)
def run_step(
    self: "Task[Any, Any]", tenant_id: int, execution_id: str, epoch: int, path: str
) -> None:
    """Run the step that task_prerun has claimed."""
    try:
        request: Any = self.request
        request.chain = current().links.run(str(request.id), path, request.chain or [])
    except (Ignore, StepFailed):
        raise
    except BaseException:
        # A SystemExit would keep the message's slot; other texts could show a tenant's data in Flower.
        logger.exception(
            "link failed", extra={"event": "LINK_FAILED", "execution_id": execution_id}
        )
        raise StepFailed("INTERNAL") from None


def receive_probe(_task: Any, _app: Any, consumer: Any, **_: Any) -> Callable[..., None]:
    """Return what a consumer does with a probe: hand it to its pool, without the events that make a row in Flower."""

    def receive(*_: Any, **__: Any) -> None:
        consumer.pool.executor.submit(current().boot.lane_probe.received)

    return receive


class ProbeTask(Task[[], None]):
    """Is never run: the consumer's strategy takes it."""

    Strategy = "executions.worker.tasks:receive_probe"


@shared_task(name=PROBE_LANE, base=ProbeTask)
def probe_lane() -> None:
    """Probe the lane; taken by the consumer, never run as a task."""
