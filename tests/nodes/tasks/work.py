"""Celery tasks, as an application has them."""

from typing import Any

from celery import Celery, Task, shared_task

app = Celery("tests", broker="memory://", set_as_current=False)


@shared_task
def shared(a: int, b: int = 1) -> int:
    """Add in a shared task."""
    return a + b


@app.task(name="other.name", autoretry_for=(ValueError,))
def owned(text: str) -> str:
    """Fail or return, without Celery's own retries."""
    if not text:
        raise ValueError("password=hunter2")
    return text.upper()


@app.task(bind=True)
def bound(self: "Task[Any, Any]", a: int) -> int:
    """Need what only Celery has."""
    return a


@app.task(bind=True, autoretry_for=(ValueError,))
def bound_and_retried(self: "Task[Any, Any]", a: int) -> int:
    """Need it, too, behind a wrapper."""
    return a
