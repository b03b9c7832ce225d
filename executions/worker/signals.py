"""task_prerun creates the execution-scoped context, task_postrun tears it down; each calls one function.

Timing: background-worker. Model: sync. Guarantee: both fire for every link that a thread gets.
Failure: Celery logs and swallows what a receiver raises; the body finds no good note and raises.
"""

from typing import Any
from uuid import UUID

from celery.signals import task_postrun, task_prerun

from executions.placement.chain import RUN_STEP
from executions.transitions.fence import Placement
from executions.worker.worker import current_links, current_machine


def connect() -> None:
    """Listen to the two signals; called once per worker."""
    task_prerun.connect(claim_and_open, dispatch_uid="executions.claim_and_open")
    task_postrun.connect(count_out_and_close, dispatch_uid="executions.count_out_and_close")


def claim_and_open(*, task_id: str, task: Any, args: Any, **_: Any) -> None:
    """Claim the step and open, or join, the context of its placement."""
    if task.name != RUN_STEP:
        return
    tenant_id, execution_id, epoch, path = args
    machine = current_machine()
    placement = Placement(
        tenant_id=tenant_id,
        execution_id=UUID(execution_id),
        epoch=epoch,
        boot=machine.boot,
        worker=machine.node_name,
    )
    current_links().begin(task_id, placement, path)


def count_out_and_close(*, task_id: str, task: Any, **_: Any) -> None:
    """Count the link out and close the context if the run is over."""
    if task.name == RUN_STEP:
        current_links().end(task_id)
