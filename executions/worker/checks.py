"""Django system checks of workers' settings."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from executions.worker.clocks import clock_problems

CLOCKS_OUT_OF_ORDER = "isolane.E010"
NO_THREAD_TO_SPARE = "isolane.E011"


@register
def check_clocks(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Check the order of the workers' clocks; safety depends on it."""
    problems = clock_problems(
        lease=settings.LEASE_SECONDS, drain_grace=settings.DRAIN_GRACE_SECONDS
    )
    return [
        Error(
            f"Clocks of workers: {problem}.",
            hint="LEASE_SECONDS and DRAIN_GRACE_SECONDS must fit executions/worker/clocks.py.",
            id=CLOCKS_OUT_OF_ORDER,
        )
        for problem in problems
    ]


@register
def check_capacity(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Check that a full worker has a thread to spare, for repeated messages of its runs."""
    capacity, threads = settings.WORKER_CAPACITY, settings.CELERY_WORKER_CONCURRENCY
    if 1 <= capacity < threads:
        return []
    return [
        Error(
            f"WORKER_CAPACITY is {capacity} and CELERY_WORKER_CONCURRENCY {threads}; a worker needs more threads"
            " than runs.",
            hint="Set ISOLANE_WORKER_CAPACITY to at least 1 and less than ISOLANE_WORKER_CONCURRENCY.",
            id=NO_THREAD_TO_SPARE,
        )
    ]
