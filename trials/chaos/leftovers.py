"""What is left when all runs have ended: in the registry, in Redis and on the machine.

Timing: a look takes some milliseconds, a walk over all processes. Model: sync. Guarantee: idempotent; it only looks.
Failure: bubble.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from executions.placement.models import Ticket, Worker
from resources.runtimes.folder import PREFIX
from tenants.scope import platform_scope
from trials.chaos.findings import Finding, Kind
from trials.chaos.servers import Servers

PAUSE_SECONDS = 0.5


def held() -> list[Finding]:
    """Tickets: each is a run that has not ended, and perhaps a slot."""
    with platform_scope():
        return [
            Finding(
                kind=Kind.SLOT,
                about=f"{ticket.execution_id} has a ticket, {ticket.state}, epoch {ticket.epoch},"
                f" worker {ticket.worker_id}",
            )
            for ticket in Ticket.objects.all()
        ]


def registered(living: Sequence[str]) -> list[Finding]:
    """Boots in the registry whose worker is dead."""
    with platform_scope():
        dead = Worker.objects.exclude(node_name__in=living)
        return [_left(f"boot {row.boot} of {row.node_name} is registered") for row in dead]


def unregistered(living: Sequence[str]) -> list[Finding]:
    """Workers that run and are not in the registry."""
    with platform_scope():
        known = set(Worker.objects.values_list("node_name", flat=True))
    return [
        Finding(kind=Kind.WORKER, about=f"{name} runs and is not registered")
        for name in living
        if name not in known
    ]


def lanes(servers: Servers, living: Sequence[str]) -> list[Finding]:
    """Messages to workers that are dead."""
    with platform_scope():
        alive = set(
            Worker.objects.filter(node_name__in=living).values_list("lane", flat=True),
        )
    return [_left(f"messages in {lane}") for lane in servers.lanes() if lane not in alive]


def folders(home: Path) -> list[Finding]:
    """Folders of runtimes, when no worker lives."""
    return [_left(f"folder {path.name}") for path in sorted(home.glob(f"{PREFIX}*"))]


def processes(home: Path, seen: Sequence[psutil.Process]) -> list[Finding]:
    """Processes that workers have started, when none lives: known as their children or by where their files are."""
    found = {process.pid: process for process in seen}
    for process in psutil.process_iter(["environ", "status"]):
        environ = process.info["environ"] or {}
        places = (environ.get("HOME", ""), environ.get("TMPDIR", ""))
        below = any(place == str(home) or place.startswith(f"{home}/") for place in places)
        if below and process.info["status"] != psutil.STATUS_ZOMBIE:
            found[process.pid] = process
    return [
        Finding(kind=Kind.PROCESS, about=f"process {_told(process)}") for process in found.values()
    ]


def settled(look: Callable[[], list[Finding]], seconds: float) -> list[Finding]:
    """Nothing, as soon as nothing is left; else what is left after the longest wait."""
    deadline = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return left


def _left(about: str) -> Finding:
    return Finding(kind=Kind.LEFT, about=about)


def _told(process: psutil.Process) -> str:
    try:
        return f"{process.pid} below {process.ppid()}: {process.cmdline()}"
    except psutil.Error:
        return f"{process.pid}, gone meanwhile"
