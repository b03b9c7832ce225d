"""Django system checks of workers' settings."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

CLOCKS_OUT_OF_ORDER = "isolane.E010"
NO_THREAD_TO_SPARE = "isolane.E011"


@register
def check_clocks(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Check the order of the workers' clocks; safety depends on it."""
    # TO FILL, with the id CLOCKS_OUT_OF_ORDER: compare LEASE_SECONDS with the clocks of executions.worker.clocks.
    return []


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
