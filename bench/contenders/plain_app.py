"""A common Celery application: JSON, and only the last task has a result."""

import os

from celery import Celery
from celery.canvas import Signature, chain

QUEUE = "plain"

app = Celery(
    "plain",
    broker=os.environ.get("BENCH_BROKER_URL"),
    backend=os.environ.get("BENCH_RESULT_URL"),
)
app.conf.update(
    task_default_queue=QUEUE,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="plain.noop")
def noop() -> None:
    """Do nothing."""


def links(steps: int) -> "Signature[None]":
    """Return a chain whose last link keeps its result, so that its end is visible."""
    last = noop.signature(immutable=True, options={"ignore_result": False})
    return chain(*[noop.si() for _ in range(steps - 1)], last)
