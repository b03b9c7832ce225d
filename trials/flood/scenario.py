"""The scenario of a flood trial: runs of two tenants at the level process, and a worker that is killed among them.

Timing: some seconds for a hundred runs.
Model: sync, one thread; workers are processes of their own.
Guarantee: the workers end with the scenario.
Failure: bubble; a run that ended otherwise than promised, and what is left behind, are results.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from executions.models import Execution
from executions.placement.dispatch import admit_and_send
from executions.placement.models import Worker
from executions.services.publishing import publish
from executions.states import TERMINAL_EXECUTION
from executions.submission.submit import RunRequest, submit
from tenants.scope import TenantRef, platform_scope, tenant_scope
from trials.flood import plan
from trials.flood.machine import Machine
from trials.output import Progress
from trials.settling import left_after
from trials.storm.orphans import in_the_ledger
from trials.storm.workers import Workers

POLL_SECONDS = 0.1
LOOK_EVERY = 5  # polls
PROGRESS_SECONDS = 10.0
STUCK_SECONDS = 120.0  # without the end of any run
SETTLE_SECONDS = 60.0
WAITING = 8  # runs beside those that have a slot, so that none is free


@dataclass(frozen=True, kw_only=True)
class FloodSize:
    """Load and seed; with `kill` a worker is killed in the middle."""

    runs: int
    seed: int
    workers: int
    at_once: int  # sandboxes
    kill: bool


@dataclass(kw_only=True)
class FloodResult:
    """Ends of runs, what was not as promised, and what is left."""

    ends: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    sandboxes: int = 0  # that were seen
    most: int = 0  # of them at the same time
    seconds: float = 0.0  # from the first submission to the last end
    settled_s: float = 0.0  # until nothing was left
    cpu_ms: float = 0.0  # of a run that succeeded, the median
    ram_mb: float = 0.0


class Flood:
    """The runs of one trial."""

    def __init__(
        self, tenants: Sequence[TenantRef], workers: Workers, machine: Machine, progress: Progress
    ) -> None:
        self._tenants = {tenant.schema: tenant for tenant in tenants}
        self._workers = workers
        self._machine = machine
        self._progress = progress
        self._promised: dict[UUID, str] = {}
        self._killed: set[str] = set()  # workers; what their last sandboxes used is not known
        self.most = 0

    def run(self, planned: Sequence[plan.PlannedRun], size: FloodSize) -> None:
        """Run all of them to their end."""
        waiting, done, polls = list(reversed(planned)), 0, 0
        last_end = last_progress = time.monotonic()
        is_killed = not size.kill
        while done < len(planned):
            while waiting and len(self._promised) - done < size.at_once + WAITING:
                self._submit(waiting.pop())
            admit_and_send()
            self._workers.check()
            before, done, polls = done, self._ended(), polls + 1
            if polls % LOOK_EVERY == 0:
                self.most = max(self.most, self._machine.look())
            if not is_killed and done >= len(planned) // 2:
                is_killed = True
                self._kill_one()
            now = time.monotonic()
            last_end = now if done > before else last_end
            if now - last_end > STUCK_SECONDS:
                raise RuntimeError(f"no run has ended for {STUCK_SECONDS:.0f} s; {done} have")
            if now - last_progress > PROGRESS_SECONDS:
                self._progress(f"{done} of {len(planned)} runs have ended")
                last_progress = now
            time.sleep(POLL_SECONDS)

    def wait_for_workers(self, number: int, seconds: float = 60.0) -> None:
        """Wait until this many workers have registered."""
        deadline = time.monotonic() + seconds
        names = [worker.name for worker in self._workers.running]
        while self._registered(names) < number:
            self._workers.check()
            if time.monotonic() > deadline:
                raise RuntimeError("the workers did not register in time")
            time.sleep(POLL_SECONDS)

    def judge(self, result: FloodResult) -> None:
        """Compare the ends of all runs with what was promised."""
        used: list[tuple[float, float]] = []
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                for run in Execution.objects.all():
                    end = f"{run.state} {run.code}".strip()
                    result.ends[end] += 1
                    result.broken += self._broken(run, end)
                    if end == "succeeded":
                        used.append((run.cpu_seconds * 1000, run.peak_ram_mb))
        if used:
            result.cpu_ms = sorted(cpu for cpu, _ in used)[len(used) // 2]
            result.ram_mb = sorted(ram for _, ram in used)[len(used) // 2]

    def _broken(self, run: Execution, end: str) -> list[str]:
        found = []
        if end != self._promised[run.pk]:
            found.append(f"run {run.pk} ended as {end!r}, not as {self._promised[run.pk]!r}")
        if run.isolation != "process":
            found.append(f"run {run.pk} ran at the level {run.isolation}")
        if end == "succeeded" and not run.cpu_seconds and run.worker not in self._killed:
            found.append(f"run {run.pk} is said to have used nothing")
        return found

    def _submit(self, planned: plan.PlannedRun) -> None:
        request = RunRequest(blueprint=plan.name_of(planned.act), inputs={}, requested_by="flood")
        run = submit(self._tenants[planned.tenant], request).execution
        self._promised[run.pk] = planned.end

    def _kill_one(self) -> None:
        name = self._workers.kill().name
        self._killed.add(name)
        self._progress(f"kill -9 of {name}; another worker starts")
        self._workers.start()

    def _ended(self) -> int:
        ended = 0
        for tenant in self._tenants.values():
            with tenant_scope(tenant):
                ended += Execution.objects.filter(state__in=sorted(TERMINAL_EXECUTION)).count()
        return ended

    @staticmethod
    def _registered(names: Sequence[str]) -> int:
        with platform_scope():
            return Worker.objects.filter(node_name__in=names).count()


def run_flood(
    tenants: Sequence[TenantRef], folder: Path, size: FloodSize, *, progress: Progress
) -> FloodResult:
    """Run the scenario for new tenants; the files of the workers are below the folder."""
    workers, machine, result = Workers(folder, trial="flood"), Machine(folder), FloodResult()
    flood = Flood(tenants, workers, machine, progress)
    try:
        for _ in range(size.workers):
            workers.start()
        flood.wait_for_workers(size.workers)
        for tenant in tenants:
            with tenant_scope(tenant):
                for act in plan.ACTS:
                    publish(plan.blueprint(act))
        began = time.monotonic()
        flood.run(plan.runs(size.seed, size.runs), size)
        ended = time.monotonic()
        progress("all runs have ended")
        pids = [worker.pid for worker in (*workers.running, *workers.ended)]
        left = left_after(lambda: in_the_ledger(tenants) + machine.left(pids), SETTLE_SECONDS)
        result.seconds, result.settled_s = ended - began, time.monotonic() - ended
    finally:
        workers.stop_all()
    logs = [worker.log for worker in workers.ended]
    result.left = left + machine.left(pids) + machine.left_by_workers(logs)
    result.most = flood.most
    result.sandboxes = len(machine.guards)
    flood.judge(result)
    return result
