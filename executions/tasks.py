"""The one Celery task: one link of a chain.

Timing: background-worker. Model: sync (a pool thread). Guarantee: as the step's; its message is gone on
receipt, since PostgreSQL is the truth. Failure: a code-only exception, or Ignore for a duplicate; never a Celery retry.
"""

import logging
from typing import Any

from celery import Task, shared_task
from celery.exceptions import Ignore

from executions.chain import RUN_STEP
from executions.worker.boot import current_links
from executions.worker.links import StepFailed

logger = logging.getLogger(__name__)


@shared_task(name=RUN_STEP, bind=True)
def run_step(
    self: "Task[Any, Any]", tenant_id: int, execution_id: str, epoch: int, path: str
) -> None:
    """Run the step that task_prerun has claimed."""
    try:
        last = not self.request.chain
        goes_on = current_links().run(str(self.request.id), path, is_last_of_window=last)
        if not goes_on:
            # Parked, or begun anew under another epoch: a success that is not followed by the next link.
            self.request.chain = None
    except (Ignore, StepFailed):
        raise
    except BaseException:
        # A SystemExit would keep the message's slot; other texts could show a tenant's data in Flower.
        logger.exception(
            "link failed", extra={"event": "LINK_FAILED", "execution_id": execution_id}
        )
        raise StepFailed("INTERNAL") from None
