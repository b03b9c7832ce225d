"""The task of the hand-written durable chain: claim the row, do nothing, write the row.

Timing: background-worker.
Model: sync (prefork).
Guarantee: at-most-once per row, since only a pending row is claimed.
Failure: Celery's own; the row stays running.
"""

from celery import shared_task
from django.utils import timezone

from bench.contenders.durable.models import Step


@shared_task(name="durable.run_step")
def run_step(run_id: str, position: int) -> None:
    """Claim the row and write its end, each in its own transaction."""
    step = Step.objects.filter(run_id=run_id, position=position)
    if step.filter(state=Step.State.PENDING).update(
        state=Step.State.RUNNING, started_at=timezone.now()
    ):
        step.update(state=Step.State.DONE, finished_at=timezone.now())
