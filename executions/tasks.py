"""The one Celery task: one link of a chain.

Timing: background-worker. Model: sync (a pool thread). Guarantee: as the step's; acknowledged on start, since
PostgreSQL is the truth. Failure: a code-only exception, or Ignore for a duplicate; never a Celery retry.
"""

from typing import Any

from celery import Task, shared_task

from executions.chain import RUN_STEP
from executions.worker.boot import current_links


@shared_task(name=RUN_STEP, bind=True)
def run_step(
    self: "Task[Any, Any]", tenant_id: int, execution_id: str, epoch: int, path: str
) -> None:
    """Run the step that task_prerun has claimed."""
    current_links().run(str(self.request.id), path, is_last_of_window=not self.request.chain)
