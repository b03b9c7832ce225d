"""The Celery application of the hand-written durable chain.

Timing: background-worker.
Model: sync (prefork).
Guarantee: at-least-once; messages are acknowledged late, and the guarded update ignores duplicates.
Failure: a lost message is not sent again.
"""

import os

from celery import Celery
from celery.canvas import Signature, chain

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.contenders.durable.settings")
QUEUE = "durable"

app = Celery(
    "durable",
    broker=os.environ.get("BENCH_BROKER_URL"),
    include=["bench.contenders.durable.tasks"],
)
app.conf.update(
    task_default_queue=QUEUE,
    task_ignore_result=True,
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    CELERY_DB_REUSE_MAX=1_000_000,  # else Celery would close the connection around every task, an unfair match
)


def links(run_id: str, steps: int) -> "Signature[None]":
    """Return one immutable link per step; arguments are ids only."""
    return chain(
        *[
            app.signature("durable.run_step", args=(run_id, position), immutable=True)
            for position in range(steps)
        ]
    )
