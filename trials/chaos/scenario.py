"""The scenario of a chaos trial, from its blueprints to its verdict.

Timing: minutes.
Model: sync, main thread; workers are processes, the listener is a thread.
Guarantee: the workers end with the scenario.
Failure: bubble; a finding is a result, not an error.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from executions.blueprints.plan import Plan
from executions.blueprints.plan import plan as planned
from executions.services.publishing import publish
from tenants.scope import TenantRef, tenant_scope
from trials import sandboxes
from trials.chaos import archive, evidence, orphans, plan, verdict
from trials.chaos.findings import Finding
from trials.chaos.injector import FaultInjector
from trials.chaos.listener import TaskEventListener
from trials.chaos.observer import Observer
from trials.chaos.rows import Evidence, Observation
from trials.chaos.servers import Servers
from trials.chaos.timeline import Timeline
from trials.chaos.traffic import Traffic
from trials.chaos.workers import Workers
from trials.output import Progress
from trials.settling import left_after

POLL_SECONDS = 0.1
PROGRESS_SECONDS = 10.0
STUCK_SECONDS = 90.0  # without the end of any run
SETTLE_SECONDS = 30.0
READY_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """Length, seed and load."""

    seconds: float
    seed: int
    at_once: int
    workers: int


@dataclass(frozen=True, kw_only=True)
class ChaosResult:
    """Findings and counts of a trial."""

    findings: Sequence[Finding]
    runs: Counter[str]  # by state and code
    levels: Counter[str]  # of runs
    faults: Counter[str]
    events: Counter[str]  # by kind
    tasks: Counter[str]  # task events, by kind
    links_failed: Counter[str]
    starts: int
    interrupted: Counter[str]  # attempts, by guarantee
    longest_gap_s: float  # without a start of any step
    times: dict[str, float]  # seconds of each part


class ChaosScenario:
    """Runs of two tenants on workers and servers of their own."""

    def __init__(
        self,
        trusted: Sequence[TenantRef],
        untrusted: Sequence[TenantRef],
        servers: Servers,
        observer: Observer,
        size: Size,
        *,
        logs: Path,
        home: Path,
        progress: Progress,
    ) -> None:
        self._tenants = [*trusted, *untrusted]
        self._mounts_before = sandboxes.mounts()
        self._servers = servers
        self._observer = observer
        self._size = size
        self._logs = logs
        self._home = home
        self._progress = progress
        self._timeline = Timeline(logs / "timeline.log")
        self._listener = TaskEventListener()
        self._workers = Workers(
            size.workers, seed=size.seed, logs=logs, home=home, timeline=self._timeline
        )
        self._documents = plan.documents(size.seed)
        self._traffic = Traffic(
            self._tenants,
            [str(document["name"]) for document in self._documents],
            seed=size.seed,
            at_once=size.at_once,
        )
        self._times: dict[str, float] = {}
        self._last_progress = self._began = time.monotonic()

    def run(self) -> ChaosResult:
        """Run the scenario and return its verdict."""
        left: list[Finding] = []
        try:
            self._prepare()
            self._lap("start")
            injector = self._inject_faults()
            self._lap("faults")
            self._wait_for_runs(injector)
            self._lap("wait for runs")
            left += left_after(partial(self._left_by_runs, injector), SETTLE_SECONDS)
            self._lap("settle")
        finally:
            self._workers.stop_all()
            self._listener.stop()
        left += self._left_by_workers()
        self._lap("stop")
        return self._result(injector, left)

    # --- parts of the scenario
    def _prepare(self) -> None:
        self._observer.prepare(self._tenants)
        self._listener.start()
        deadline = time.monotonic() + READY_SECONDS
        while orphans.unregistered(self._workers.names):
            self._workers.replace_ended(is_excused=lambda _: False)
            if self._workers.findings or time.monotonic() > deadline:
                raise RuntimeError("the workers did not register in time; see their logs")
            time.sleep(POLL_SECONDS)
        for tenant in self._tenants:
            with tenant_scope(tenant):
                for document in self._documents:
                    publish(document)

    def _inject_faults(self) -> FaultInjector:
        size = self._size
        schedule = plan.schedule(size.seed, size.seconds, size.workers)
        injector = FaultInjector(schedule, self._workers, self._servers, self._timeline)
        until = time.monotonic() + size.seconds
        while time.monotonic() < until:
            injector.turn()
            self._turn(injector, more=True)
        injector.end()
        return injector

    def _wait_for_runs(self, injector: FaultInjector) -> None:
        """Wait until all runs have ended; the verdict finds those that do not."""
        self._traffic.last_end = time.monotonic()
        while self._traffic.open:
            self._turn(injector, more=False)
            if time.monotonic() - self._traffic.last_end > STUCK_SECONDS:
                self._progress(
                    f"no run has ended for {STUCK_SECONDS:.0f} s; {self._traffic.open} are open"
                )
                return

    def _turn(self, injector: FaultInjector, *, more: bool) -> None:
        self._workers.replace_ended(is_excused=injector.explains_failed_start)
        self._traffic.turn(more=more)
        if time.monotonic() - self._last_progress > PROGRESS_SECONDS:
            self._last_progress = time.monotonic()
            ended = len(self._traffic.submitted) - self._traffic.open
            self._progress(
                f"{self._last_progress - self._began:4.0f} s: {ended} runs have ended, {self._traffic.open} are open,"
                f" {self._timeline.counts.total()} faults"
            )
        time.sleep(POLL_SECONDS)

    def _left_by_runs(self, injector: FaultInjector) -> list[Finding]:
        """Find orphans while workers live and may still clean up; all workers must be registered by then."""
        self._workers.replace_ended(is_excused=injector.explains_failed_start)
        living = self._workers.names
        return [
            *orphans.unregistered(living),
            *orphans.tickets(),
            *orphans.dead_workers(living),
            *orphans.lanes(self._servers, living),
        ]

    def _left_by_workers(self) -> list[Finding]:
        """Find orphans when no worker lives."""
        return [
            *self._workers.findings,
            *orphans.dead_workers([]),
            *orphans.lanes(self._servers, []),
            *orphans.folders(self._home),
            *orphans.processes(self._home, self._workers.running_children()),
            *orphans.of_sandboxes(self._workers.pids, self._mounts_before),
        ]

    def _result(self, injector: FaultInjector, left: Sequence[Finding]) -> ChaosResult:
        observed, events = self._observer.observations(), evidence.events(self._tenants)
        everything = Evidence(
            plans=_plans(self._documents),
            submitted=self._traffic.submitted,
            cancelled=self._traffic.cancelled,
            runs=evidence.runs(self._tenants),
            steps=evidence.steps(self._tenants),
            events=events,
            observed=observed,
            successes=self._listener.successes(),
            killed=injector.killed,
        )
        archive.keep(everything, self._logs)
        found = verdict.findings(everything)
        self._lap("verdict")
        return ChaosResult(
            findings=[*injector.findings, *found, *left],
            runs=self._traffic.states(),
            levels=self._traffic.levels(),
            faults=self._timeline.counts,
            events=Counter(event.kind for event in events),
            tasks=self._listener.counts,
            links_failed=self._listener.failed,
            starts=len(observed.starts),
            interrupted=verdict.interrupted(everything),
            longest_gap_s=_longest_gap(observed.starts),
            times=self._times,
        )

    def _lap(self, part: str) -> None:
        self._times[part] = time.monotonic() - self._began - sum(self._times.values())


def _longest_gap(starts: Sequence[Observation]) -> float:
    times = sorted(start.at for start in starts)
    return max(((b - a).total_seconds() for a, b in pairwise(times)), default=0.0)


def _plans(documents: Sequence[dict[str, Any]]) -> dict[str, Plan]:
    return {str(document["name"]): planned(document) for document in documents}
