"""Find what is left behind when all runs have ended: in the registry, in Redis and on the machine.

Timing: some milliseconds, and a walk over all processes.
Model: sync.
Guarantee: idempotent; it only reads.
Failure: bubble.
"""

from collections.abc import Sequence, Set
from pathlib import Path

import psutil

from executions.placement.models import Ticket, Worker
from foundation.process_states import ENDED
from resources.runtimes.folder import PREFIX
from tenants.scope import platform_scope
from trials import sandboxes
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.servers import Servers


def tickets() -> list[Finding]:
    """Find tickets: each is a run that has not ended, and may hold a slot."""
    with platform_scope():
        return [
            Finding(
                kind=FindingKind.SLOT,
                about=f"{ticket.execution_id} has a ticket, {ticket.state}, epoch {ticket.epoch},"
                f" worker {ticket.worker_id}",
            )
            for ticket in Ticket.objects.all()
        ]


def dead_workers(living: Sequence[str]) -> list[Finding]:
    """Find registered boots without a living worker."""
    with platform_scope():
        dead = Worker.objects.exclude(node_name__in=living)
        return [_orphan(f"boot {row.boot} of {row.node_name} is registered") for row in dead]


def unregistered(living: Sequence[str]) -> list[Finding]:
    """Find workers that run and are not registered."""
    with platform_scope():
        known = set(Worker.objects.values_list("node_name", flat=True))
    return [
        Finding(kind=FindingKind.WORKER, about=f"{name} runs and is not registered")
        for name in living
        if name not in known
    ]


def lanes(servers: Servers, living: Sequence[str]) -> list[Finding]:
    """Find messages to dead workers."""
    with platform_scope():
        alive = set(
            Worker.objects.filter(node_name__in=living).values_list("lane", flat=True),
        )
    return [_orphan(f"messages in {lane}") for lane in servers.lanes() if lane not in alive]


def folders(home: Path) -> list[Finding]:
    """Find folders of runtimes; to be called when no worker lives."""
    return [_orphan(f"folder {path.name}") for path in sorted(home.glob(f"{PREFIX}*"))]


def of_sandboxes(workers: Sequence[int], mounts_before: Set[str]) -> list[Finding]:
    """Find cgroups of runs of these workers, and mounts that were not there before."""
    return [
        _orphan(about)
        for about in (*sandboxes.cgroups(workers), *(sandboxes.mounts() - mounts_before))
    ]


def processes(home: Path, seen: Sequence[psutil.Process]) -> list[Finding]:
    """Find processes of dead workers: among those seen as their children, and by where their files are."""
    found = {process.pid: process for process in seen}
    for process in psutil.process_iter(["environ", "status"]):
        environ = process.info["environ"] or {}
        places = (environ.get("HOME", ""), environ.get("TMPDIR", ""))
        below = any(place == str(home) or place.startswith(f"{home}/") for place in places)
        if below and process.info["status"] not in ENDED:
            found[process.pid] = process
    return [
        Finding(kind=FindingKind.PROCESS, about=f"process {_description(process)}")
        for process in found.values()
    ]


def _orphan(about: str) -> Finding:
    return Finding(kind=FindingKind.ORPHAN, about=about)


def _description(process: psutil.Process) -> str:
    try:
        return f"{process.pid} below {process.ppid()}: {process.cmdline()}"
    except psutil.Error:
        return f"{process.pid}, ended meanwhile"
