"""Celery's signals of a link: task_prerun opens the context of its placement, the last task_postrun tears it down.

Timing: background-worker.
Model: sync.
Guarantee: both fire for every link that a thread gets.
Failure: Celery logs and swallows what a receiver raises; the body finds no good note and raises.
"""

from typing import Any

from celery.signals import task_postrun, task_prerun

from executions.placement.chain import RUN_STEP
from executions.worker.worker import current


def connect() -> None:
    """Listen to the two signals; called once per worker."""
    task_prerun.connect(claim_and_open, dispatch_uid="executions.claim_and_open")
    task_postrun.connect(count_out_and_close, dispatch_uid="executions.count_out_and_close")


def claim_and_open(*, task_id: str, task: Any, args: Any, **_: Any) -> None:
    """Claim the step and open, or join, the context of its placement."""
    if task.name != RUN_STEP:
        return
    tenant_id, execution_id, epoch, path = args
    worker = current()
    worker.links.begin(task_id, worker.boot.placement(tenant_id, execution_id, epoch), path)


def count_out_and_close(*, task_id: str, task: Any, **_: Any) -> None:
    """Count the link out and close the context if the run is over."""
    if task.name == RUN_STEP:
        current().links.end(task_id)
