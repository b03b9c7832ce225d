"""One chaos from its blueprints to its verdict.

Timing: minutes. Model: sync, main thread; workers are processes, the listener is a thread. Guarantee: the workers end
with it. Failure: bubble; what is found is no failure but the result.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from executions.blueprints.plan import Plan
from executions.blueprints.plan import plan as planned
from executions.services.publishing import publish
from tenants.scope import TenantRef, tenant_scope
from trials.chaos import archive, evidence, leftovers, plan, verdict
from trials.chaos.diary import Diary
from trials.chaos.findings import Finding
from trials.chaos.judge import Judge
from trials.chaos.listener import Listener
from trials.chaos.rows import Evidence, Told
from trials.chaos.servers import Servers
from trials.chaos.traffic import Traffic
from trials.chaos.weather import Weather
from trials.chaos.workers import Workers

POLL_SECONDS = 0.1
SAY_SECONDS = 10.0
STUCK_SECONDS = 90.0  # without the end of any run
SETTLE_SECONDS = 30.0
READY_SECONDS = 60.0

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of it."""

    seconds: float
    seed: int
    at_once: int
    workers: int


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """How everything ended, and what did not end well."""

    findings: Sequence[Finding]
    runs: Counter[str]  # by state and code
    calamities: Counter[str]
    events: Counter[str]  # by kind
    tasks: Counter[str]  # that were heard of, by how they ended
    links_failed: Counter[str]
    starts: int
    cuts: Counter[str]  # in the middle, by guarantee
    silence_s: float  # the longest time in which no step began
    times: dict[str, float]  # seconds of each part


class Chaos:
    """Runs of two tenants over workers and servers of its own."""

    def __init__(
        self,
        tenants: Sequence[TenantRef],
        servers: Servers,
        judge: Judge,
        size: Size,
        *,
        logs: Path,
        home: Path,
        say: Say,
    ) -> None:
        self._tenants = tenants
        self._servers = servers
        self._judge = judge
        self._size = size
        self._logs = logs
        self._home = home
        self._say = say
        self._diary = Diary(logs / "weather.log")
        self._listener = Listener()
        self._workers = Workers(
            size.workers, seed=size.seed, logs=logs, home=home, diary=self._diary
        )
        self._documents = plan.documents(size.seed)
        self._traffic = Traffic(
            tenants,
            [str(document["name"]) for document in self._documents],
            seed=size.seed,
            judge=judge.dsn,
            at_once=size.at_once,
        )
        self._times: dict[str, float] = {}
        self._said = self._began = time.monotonic()

    def unleash(self) -> Aftermath:
        """From the first run to the verdict."""
        left: list[Finding] = []
        try:
            self._prepare()
            self._lap("started")
            weather = self._rage()
            self._lap("weather")
            self._calm(weather)
            self._lap("calm")
            left += leftovers.settled(partial(self._left, weather), SETTLE_SECONDS)
            self._lap("settled")
        finally:
            self._workers.stop_all()
            self._listener.stop()
        left += self._left_for_good()
        self._lap("stopped")
        return self._aftermath(weather, left)

    # --- its parts
    def _prepare(self) -> None:
        self._judge.prepare()
        self._listener.start()
        deadline = time.monotonic() + READY_SECONDS
        while leftovers.unregistered(self._workers.names):
            self._workers.tend(excuses=lambda _: False)
            if self._workers.findings or time.monotonic() > deadline:
                raise RuntimeError("the workers did not register in time; their logs say why")
            time.sleep(POLL_SECONDS)
        for tenant in self._tenants:
            with tenant_scope(tenant):
                for document in self._documents:
                    publish(document)

    def _rage(self) -> Weather:
        size = self._size
        schedule = plan.schedule(size.seed, size.seconds, size.workers)
        weather = Weather(schedule, self._workers, self._servers, self._diary)
        until = time.monotonic() + size.seconds
        while time.monotonic() < until:
            weather.turn()
            self._turn(weather, more=True)
        weather.end()
        return weather

    def _calm(self, weather: Weather) -> None:
        """Until all runs have ended; those that do not are found by the verdict."""
        self._traffic.moved = time.monotonic()
        while self._traffic.open:
            self._turn(weather, more=False)
            if time.monotonic() - self._traffic.moved > STUCK_SECONDS:
                self._say(f"no run has ended for {STUCK_SECONDS:.0f} s; {self._traffic.open} wait")
                return

    def _turn(self, weather: Weather, *, more: bool) -> None:
        self._workers.tend(excuses=weather.excuses)
        self._traffic.turn(more=more)
        if time.monotonic() - self._said > SAY_SECONDS:
            self._said = time.monotonic()
            ended = len(self._traffic.submitted) - self._traffic.open
            self._say(
                f"{self._said - self._began:4.0f} s: {ended} runs have ended, {self._traffic.open} are open,"
                f" {self._diary.counts.total()} calamities"
            )
        time.sleep(POLL_SECONDS)

    def _left(self, weather: Weather) -> list[Finding]:
        """While workers live, and may still tidy up; those that were replaced last are to be there by then."""
        self._workers.tend(excuses=weather.excuses)
        living = self._workers.names
        return [
            *leftovers.unregistered(living),
            *leftovers.held(),
            *leftovers.registered(living),
            *leftovers.lanes(self._servers, living),
        ]

    def _left_for_good(self) -> list[Finding]:
        return [
            *self._workers.findings,
            *leftovers.registered([]),
            *leftovers.lanes(self._servers, []),
            *leftovers.folders(self._home),
            *leftovers.processes(self._home, self._workers.left_running()),
        ]

    def _aftermath(self, weather: Weather, left: Sequence[Finding]) -> Aftermath:
        heard, events = self._judge.heard(), evidence.events(self._tenants)
        everything = Evidence(
            plans=_plans(self._documents),
            submitted=self._traffic.submitted,
            cancelled=self._traffic.cancelled,
            runs=evidence.runs(self._tenants),
            steps=evidence.steps(self._tenants),
            events=events,
            heard=heard,
            successes=self._listener.successes(),
            killed=weather.killed,
        )
        archive.keep(everything, self._logs)
        found = verdict.findings(everything)
        self._lap("judged")
        return Aftermath(
            findings=[*weather.findings, *found, *left],
            runs=self._traffic.states(),
            calamities=self._diary.counts,
            events=Counter(event.kind for event in events),
            tasks=self._listener.heard,
            links_failed=self._listener.failed,
            starts=len(heard.starts),
            cuts=verdict.cuts(everything),
            silence_s=_silence(heard.starts),
            times=self._times,
        )

    def _lap(self, part: str) -> None:
        self._times[part] = time.monotonic() - self._began - sum(self._times.values())


def _silence(starts: Sequence[Told]) -> float:
    times = sorted(told.at for told in starts)
    return max(((b - a).total_seconds() for a, b in pairwise(times)), default=0.0)


def _plans(documents: Sequence[dict[str, Any]]) -> dict[str, Plan]:
    return {str(document["name"]): planned(document) for document in documents}
