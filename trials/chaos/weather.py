"""The calamities of a plan, brought about at their times.

Timing: each at its time or, if an earlier one took long, right after it. Model: sync, main thread. Guarantee:
best-effort; one for which there is nobody is passed over. Failure: bubble, unless a process or the database is away.
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
from trials.chaos.diary import Diary
from trials.chaos.findings import Finding
from trials.chaos.findings import Kind as Broken
from trials.chaos.ghost import let_in
from trials.chaos.plan import Calamity, Kind
from trials.chaos.servers import Server, Servers
from trials.chaos.workers import Worker, Workers

FLUSHED_SECONDS = 0.5
DUPLICATES = 12  # runs whose chains are sent again at once
HAUNTED = 4  # runs that are written to at once by who does not hold them


class Weather:
    """Over these workers and servers."""

    def __init__(
        self, schedule: Sequence[Calamity], workers: Workers, servers: Servers, diary: Diary
    ) -> None:
        self._waiting = sorted(schedule, key=lambda calamity: calamity.at, reverse=True)
        self._workers = workers
        self._servers = servers
        self._diary = diary
        self._later: list[tuple[float, Callable[[], None]]] = []  # what ends something
        self._began = time.monotonic()
        self.killed: set[int] = set()  # children
        self.findings: list[Finding] = []

    def turn(self) -> None:
        """Bring about and end what is due."""
        now = time.monotonic()
        due = [end for at, end in self._later if at <= now]
        self._later = [(at, end) for at, end in self._later if at > now]
        for end in due:
            end()
        while self._waiting and self._began + self._waiting[-1].at <= now:
            self._strike(self._waiting.pop())

    def end(self) -> None:
        """No more of it: what is stopped goes on, what is away comes back."""
        self._waiting = []
        for _, end in self._later:
            end()
        self._later = []
        self._workers.thaw_all()
        self._servers.start()
        self._diary.note("the weather is over")

    def excuses(self, worker: Worker) -> bool:
        """Whether a worker that could not start had a reason."""
        return worker.was_struck or self._servers.postgres.was_away(worker.began)

    def _strike(self, calamity: Calamity) -> None:
        worker = self._workers.slots[calamity.slot % len(self._workers.slots)]
        match calamity.kind:
            case Kind.KILL_WORKER:
                happened = self._kill_worker(worker)
            case Kind.STOP_WORKER:
                happened = self._stop_worker(worker, calamity.lasts)
            case Kind.KILL_CHILD:
                happened = self._kill_child(worker, calamity.chance)
            case Kind.STOP_CHILD:
                happened = self._stop_child(worker, calamity.chance, calamity.lasts)
            case Kind.DUPLICATE:
                happened = self._send_again(calamity.chance)
            case Kind.GHOST:
                happened = self._haunt(calamity.chance)
            case Kind.FLUSH:
                happened = self._flush()
            case Kind.REDIS:
                happened = self._restart(self._servers.valkey, calamity.lasts)
            case Kind.POSTGRES:
                happened = self._restart(self._servers.postgres, calamity.lasts)
        self._diary.note(
            f"{calamity.kind}: {happened or 'nobody there'}",
            count=calamity.kind if happened else "",
        )

    # --- workers
    def _kill_worker(self, worker: Worker) -> str:
        worker.kill()
        self._workers.replace(worker.slot)
        return f"{worker.name} (pid {worker.pid})"

    def _stop_worker(self, worker: Worker, seconds: float) -> str:
        if worker.process.poll() is not None:
            return ""
        worker.stop(time.monotonic() + seconds)
        self._after(seconds, lambda: self._thaw(worker))
        # When it goes on, it finds in its lane what may be others' by then.
        waiting = self._send_again(0.0, worker.name) or "nothing"
        return f"{worker.name} (pid {worker.pid}) for {seconds:.1f} s, sent meanwhile: {waiting}"

    def _thaw(self, worker: Worker) -> None:
        if worker.thaws_at is not None:
            worker.thaw()
            self._diary.note(f"{worker.name} goes on")

    # --- their children
    def _kill_child(self, worker: Worker, chance: float) -> str:
        child = _chosen(worker, chance)
        if child is None:
            return ""
        told = _told(child, worker)
        self.killed.add(child.pid)
        _signal(child, signal.SIGKILL)
        return told

    def _stop_child(self, worker: Worker, chance: float, seconds: float) -> str:
        child = _chosen(worker, chance)
        if child is None:
            return ""
        told = _told(child, worker)
        _signal(child, signal.SIGSTOP)
        self._after(seconds, lambda: _signal(child, signal.SIGCONT))
        return f"{told} for {seconds:.1f} s"

    # --- what moves between them
    def _send_again(self, chance: float, name: str = "") -> str:
        """Duplicates of what workers, or this one, have already been sent."""
        only = {"worker__node_name": name} if name else {}
        try:
            with platform_scope():
                placed = Ticket.objects.filter(state=TicketState.PLACED, **only)
                found = list(placed.select_related("worker").order_by("execution_id"))
            first = int(chance * len(found))
            sent = [ticket for ticket in (found * 2)[first : first + DUPLICATES] if _sent(ticket)]
        except (OperationalError, InterfaceError):
            connections.close_all()
            return ""
        return ", ".join(f"{ticket.execution_id} epoch {ticket.epoch}" for ticket in sent)

    def _haunt(self, chance: float) -> str:
        """Writes of workers that no longer hold a run, or never did."""
        try:
            with platform_scope():
                found = list(Ticket.objects.filter(state=TicketState.PLACED).order_by("-epoch"))
            first = int(chance * len(found) / 2)
            haunted = found[first : first + HAUNTED]
            for ticket in haunted:
                self.findings += [Finding(kind=Broken.FENCE, about=what) for what in let_in(ticket)]
        except (OperationalError, InterfaceError):
            connections.close_all()
            return ""
        return ", ".join(f"{ticket.execution_id} epoch {ticket.epoch}" for ticket in haunted)

    def _flush(self) -> str:
        try:
            with platform_scope():
                lanes = list(Registered.objects.values_list("lane", flat=True))
        except (OperationalError, InterfaceError):
            connections.close_all()
            lanes = []
        taken = self._servers.flush(lanes, FLUSHED_SECONDS)
        return f"{taken} messages of the {FLUSHED_SECONDS} s after it are lost, too"

    def _restart(self, server: Server, seconds: float) -> str:
        server.stop()
        self._after(seconds, server.start)
        return f"away for {seconds:.0f} s"

    def _after(self, seconds: float, end: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, end))


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


def _chosen(worker: Worker, chance: float) -> psutil.Process | None:
    found = worker.children()
    worker.was_struck |= bool(found)
    return found[int(chance * len(found))] if found else None


def _told(child: psutil.Process, worker: Worker) -> str:
    try:
        command = " ".join(child.cmdline()[:4])
    except psutil.Error:
        command = "gone"
    return f"{child.pid} of {worker.name}: {command}"


def _signal(child: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        child.send_signal(number)  # psutil compares start times, so a reused id is safe
