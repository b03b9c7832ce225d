"""Inject the faults of a plan at their times.

Timing: each fault at its time, or right after an earlier one that took long.
Model: sync, main thread.
Guarantee: best-effort; a fault without a target is skipped.
Failure: bubble, unless a process has ended or the database is down.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Sequence

import psutil
from django.db import InterfaceError, OperationalError, connections

from executions.placement.chain import SHORT_TRY_SECONDS
from executions.placement.dispatch import send
from executions.placement.models import Ticket
from executions.placement.models import Worker as Registered
from executions.states import TicketState
from resources.placement import Placement
from tenants.scope import platform_scope
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.plan import Fault, FaultKind
from trials.chaos.servers import Server, Servers
from trials.chaos.stale_writer import accepted_writes
from trials.chaos.timeline import Timeline
from trials.chaos.workers import Worker, Workers
from trials.sandboxes import is_sandboxed, pid_namespace_number, runtime_number

FLUSHED_SECONDS = 0.5
DUPLICATES = 12  # runs whose chains are sent again at once
STALE_WRITES = 4  # runs that a stale writer writes to at once


class FaultInjector:
    """Inject faults into these workers and servers."""

    def __init__(
        self, schedule: Sequence[Fault], workers: Workers, servers: Servers, timeline: Timeline
    ) -> None:
        self._pending = sorted(schedule, key=lambda fault: fault.at, reverse=True)
        self._workers = workers
        self._servers = servers
        self._timeline = timeline
        self._recoveries: list[tuple[float, Callable[[], None]]] = []  # by the monotonic clock
        self._began = time.monotonic()
        self.killed: set[int] = set()  # children, by the numbers of runtimes
        self.findings: list[Finding] = []

    def turn(self) -> None:
        """Inject the faults that are due, and end those whose time is over."""
        now = time.monotonic()
        due = [recover for at, recover in self._recoveries if at <= now]
        self._recoveries = [(at, recover) for at, recover in self._recoveries if at > now]
        for recover in due:
            recover()
        while self._pending and self._began + self._pending[-1].at <= now:
            self._inject(self._pending.pop())

    def end(self) -> None:
        """End all faults: frozen workers continue, stopped servers start."""
        self._pending = []
        for _, recover in self._recoveries:
            recover()
        self._recoveries = []
        self._workers.thaw_all()
        self._servers.start()
        self._timeline.note("no more faults")

    def explains_failed_start(self, worker: Worker) -> bool:
        """Return True if a fault explains that this worker could not start."""
        return worker.was_faulted or self._servers.postgres.was_down(worker.began)

    def _inject(self, fault: Fault) -> None:
        worker = self._workers.slots[fault.slot % len(self._workers.slots)]
        match fault.kind:
            case FaultKind.KILL_WORKER:
                target = self._kill_worker(worker)
            case FaultKind.STOP_WORKER:
                target = self._freeze_worker(worker, fault.lasts)
            case FaultKind.KILL_CHILD:
                target = self._kill_child(worker, fault.pick)
            case FaultKind.STOP_CHILD:
                target = self._freeze_child(worker, fault.pick, fault.lasts)
            case FaultKind.DUPLICATE:
                target = self._send_again(fault.pick)
            case FaultKind.STALE_WRITE:
                target = self._write_stale(fault.pick)
            case FaultKind.FLUSH:
                target = self._flush()
            case FaultKind.REDIS:
                target = self._restart(self._servers.valkey, fault.lasts)
            case FaultKind.POSTGRES:
                target = self._restart(self._servers.postgres, fault.lasts)
        self._timeline.note(
            f"{fault.kind}: {target or 'no target'}", count=fault.kind if target else ""
        )

    # --- workers
    def _kill_worker(self, worker: Worker) -> str:
        worker.kill()
        self._workers.replace(worker.slot)
        return f"{worker.name} (pid {worker.pid})"

    def _freeze_worker(self, worker: Worker, seconds: float) -> str:
        if worker.process.poll() is not None:
            return ""
        worker.freeze(time.monotonic() + seconds)
        self._after(seconds, lambda: self._thaw(worker))
        # When it continues, its lane holds runs that may belong to other workers by then.
        waiting = self._send_again(0.0, worker.name) or "nothing"
        return f"{worker.name} (pid {worker.pid}) for {seconds:.1f} s, sent meanwhile: {waiting}"

    def _thaw(self, worker: Worker) -> None:
        if worker.frozen_until is not None:
            worker.thaw()
            self._timeline.note(f"{worker.name} continues")

    # --- children of workers
    def _kill_child(self, worker: Worker, pick: float) -> str:
        child = _picked(worker, pick)
        if child is None:
            return ""
        description = _description(child, worker)
        self.killed.add(runtime_number(child.pid, pid_namespace_number(child.pid)))
        _signal(child, signal.SIGKILL)
        return description

    def _freeze_child(self, worker: Worker, pick: float, seconds: float) -> str:
        child = _picked(worker, pick)
        if child is None:
            return ""
        description = _description(child, worker)
        _signal(child, signal.SIGSTOP)
        self._after(seconds, lambda: _signal(child, signal.SIGCONT))
        return f"{description} for {seconds:.1f} s"

    # --- messages and writes
    def _send_again(self, pick: float, name: str = "") -> str:
        """Send duplicates of placements to all workers, or to the named one."""
        only = {"worker__node_name": name} if name else {}
        try:
            with platform_scope():
                placed = Ticket.objects.filter(state=TicketState.PLACED, **only)
                found = list(placed.select_related("worker").order_by("execution_id"))
            first = int(pick * len(found))
            sent = [ticket for ticket in (found * 2)[first : first + DUPLICATES] if _sent(ticket)]
        except (OperationalError, InterfaceError):
            connections.close_all()
            return ""
        return ", ".join(f"{ticket.execution_id} epoch {ticket.epoch}" for ticket in sent)

    def _write_stale(self, pick: float) -> str:
        """Write to some runs without holding them."""
        try:
            with platform_scope():
                found = list(Ticket.objects.filter(state=TicketState.PLACED).order_by("-epoch"))
            first = int(pick * len(found) / 2)
            targets = found[first : first + STALE_WRITES]
            for ticket in targets:
                self.findings += [
                    Finding(kind=FindingKind.FENCE, about=write)
                    for write in accepted_writes(ticket)
                ]
        except (OperationalError, InterfaceError):
            connections.close_all()
            return ""
        return ", ".join(f"{ticket.execution_id} epoch {ticket.epoch}" for ticket in targets)

    def _flush(self) -> str:
        try:
            with platform_scope():
                lanes = list(Registered.objects.values_list("lane", flat=True))
        except (OperationalError, InterfaceError):
            connections.close_all()
            lanes = []
        taken = self._servers.flush(lanes, FLUSHED_SECONDS)
        return f"{taken} messages of the next {FLUSHED_SECONDS} s are lost, too"

    def _restart(self, server: Server, seconds: float) -> str:
        server.stop()
        self._after(seconds, server.start)
        return f"down for {seconds:.0f} s"

    def _after(self, seconds: float, recover: Callable[[], None]) -> None:
        self._recoveries.append((time.monotonic() + seconds, recover))


def _sent(ticket: Ticket) -> bool:
    if ticket.worker is None:
        return False
    placement = Placement(
        tenant_id=ticket.tenant_id,
        execution_id=ticket.execution_id,
        epoch=ticket.epoch,
        boot=ticket.worker.boot,
        worker=ticket.worker.node_name,
        lane=ticket.worker.lane,
    )
    return send(placement, timeout=SHORT_TRY_SECONDS)


def _picked(worker: Worker, pick: float) -> psutil.Process | None:
    found = worker.children()
    worker.was_faulted |= bool(found)
    return found[int(pick * len(found))] if found else None


def _description(child: psutil.Process, worker: Worker) -> str:
    try:
        command = " ".join(child.cmdline()[:4])
    except psutil.Error:
        command = "ended"
    where = ", in a sandbox" if is_sandboxed(child.pid) else ""
    return f"{child.pid} of {worker.name}: {command}{where}"


def _signal(child: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        child.send_signal(number)  # psutil compares start times, so a reused pid is safe
