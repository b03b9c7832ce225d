"""The level `process` on this machine: offered by the stack's workers, or the reason why not. Needs its settings.

Timing: a query; where the level is not offered some seconds more, to try it as a worker does.
Model: sync.
Guarantee: idempotent; what the try starts ends with it.
Failure: bubble.
"""

from collections.abc import Iterable

from django.conf import settings
from rich.text import Text

from executions.placement.models import Worker
from orchestrator.cli.support.django import CONSOLE
from resources.runtimes.registry import build_backends
from tenants.isolation import Isolation
from tenants.scope import platform_scope


def report_process_level(workers: Iterable[str], otherwise: str) -> bool:
    """Return True if one of these workers offers `process`; else print one line: why, the sentence given, a way out."""
    with platform_scope():
        found = Worker.objects.filter(node_name__in=list(workers))
        offered = {level for worker in found for level in worker.isolation_levels}
    if Isolation.PROCESS in offered:
        return True
    reason = _reason_here() or "the workers' logs say why (LEVEL_UNAVAILABLE)"
    line = f"Level process is not available: {reason}. {otherwise} 'isolane levels' tells more."
    CONSOLE.print(Text(line, style="yellow"), soft_wrap=True)  # one line, also in a log
    return False


def _reason_here() -> str:
    """Try the level in this process, on the workers' machine and as their user."""
    level = Isolation.PROCESS.value
    backend = build_backends({level: settings.RUNTIMES[level]})[level]
    try:
        return backend.availability().reason
    finally:
        backend.stop()
