"""Measure direct connections and those through the gate, one after the other, in rounds.

Timing: a minute or two.
Model: sync; one run at a time.
Guarantee: best-effort; a step that fails ends the benchmark.
Failure: bubble.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import psutil

from bench.gate.figures import DIRECT, GATE, RouteCost, Times, Transfer
from bench.gate.place import CpuWatch, opened, parts
from bench.levels.ram import private_mb
from isolane.protocol import Grant
from resources.runtimes.base import RuntimeBackend

HOST, ADDRESS = "remote.example.com", "127.0.0.1"
SHARED, PROCESS = "shared", "process"
DIRECTIONS = ("up", "down")
_MB_PER_GB = 1024
_LOOKS = 3  # at the memory in a round: looking takes longer than a run
_LEFT_MB = 4000  # more than is carried until the result is here


class Setting(NamedTuple):
    """The backends by level, the remote server, and the customer's database."""

    backends: Mapping[str, RuntimeBackend]
    server_pid: int
    port: int
    database: Grant

    @property
    def remote(self) -> Grant:
        """Return the grant of the remote server."""
        return Grant(
            name="remote",
            type="http_api",
            definition="remote",
            scope="execution",
            config={"base_url": f"http://{HOST}:{self.port}"},
            secrets={},
            address=ADDRESS,
        )

    def place(self, level: str) -> dict[str, Any]:
        """Return where a step of this level connects."""
        return {"host": ADDRESS if level == SHARED else HOST, "port": self.port}


def transfers(setting: Setting, number: int, mb: int) -> Iterator[Transfer]:
    """Measure both directions both ways."""
    for level, way in ((SHARED, DIRECT), (PROCESS, GATE)):
        with opened(setting.backends[level], [setting.remote]) as run:
            run.step("gate.first", **setting.place(level))
            pids = parts(run.pid, sandboxed=level == PROCESS)
            pids.pop("guard", None)
            for direction in DIRECTIONS:
                watch = CpuWatch({**pids, "server": setting.server_pid})
                found = run.step(f"gate.{direction}", **setting.place(level), mb=mb).output
                spent = watch.spent()
                if level == SHARED:
                    spent.pop("gate", None)
                yield Transfer(
                    direction=direction,
                    way=way,
                    round=number,
                    mb_s=mb / found["seconds"],
                    cpu={part: cpu * _MB_PER_GB / mb for part, cpu in spent.items()},
                )


def latencies(setting: Setting, times: int) -> Iterator[Times]:
    """Measure a byte there and back, and a trivial query: direct, through a tunnel, brokered."""
    for level, way in ((SHARED, DIRECT), (PROCESS, "tunnel")):
        with opened(setting.backends[level], [setting.remote]) as run:
            echo = run.step("gate.echo", **setting.place(level), times=times).output
        yield Times(name=f"a byte and back, {way}", ms=echo)
    inside = {**setting.database.config, "credentials": "inside"}
    tunnelled = replace(setting.database, config=inside)
    for level, way, grant in (
        (SHARED, DIRECT, setting.database),
        (PROCESS, "tunnel", tunnelled),
        (PROCESS, "brokered", setting.database),
    ):
        with opened(setting.backends[level], [grant]) as run:
            query = run.step("gate.query", times=times).output
        yield Times(name=f"SELECT 1, {way}", ms=query)


def results(setting: Setting, tries: int) -> Times:
    """Measure how late a result is while bytes go through the gate, beside a connection that nobody reads."""
    found = []
    for _ in range(tries):
        with opened(setting.backends[PROCESS], [setting.remote]) as run:
            left = run.step("gate.leave", **setting.place(PROCESS), mb=_LEFT_MB)
            found.append((left.at - left.output) * 1000)
    return Times(name="RESULT during a transfer, beside a stalled connection", ms=found)


def route_costs(setting: Setting, number: int, runs: int) -> Iterator[RouteCost]:
    """Measure runs without a resource, with a route that is not used, and with one that is."""
    remote = [setting.remote]
    place = setting.place(PROCESS)
    yield _route_cost(setting, "no resource", number, runs, [], "gate.nothing", {})
    yield _route_cost(setting, "a route, not used", number, runs, remote, "gate.nothing", {})
    yield _route_cost(setting, "a route, first byte", number, runs, remote, "gate.first", place)


def _route_cost(
    setting: Setting,
    name: str,
    number: int,
    runs: int,
    grants: Sequence[Grant],
    uses: str,
    place: Mapping[str, Any],
) -> RouteCost:
    starts, ram, forwarder = [], [], []
    began, looking = time.monotonic(), 0.0
    for index in range(runs):
        asked_at = time.monotonic()
        with opened(setting.backends[PROCESS], grants) as run:
            starts.append((run.step(uses, **place).output - asked_at) * 1000)
            if index < _LOOKS:
                looked_at = time.monotonic()
                pids = parts(run.pid, sandboxed=True)
                ram.append(private_mb([psutil.Process(pid) for pid in pids.values()]))
                own = [psutil.Process(pids["forwarder"])] if "forwarder" in pids else []
                forwarder.append(private_mb(own))
                looking += time.monotonic() - looked_at
    return RouteCost(
        name=name,
        round=number,
        rate=runs / (time.monotonic() - began - looking),
        start_ms=statistics.median(starts),
        ram_mb=statistics.median(ram),
        forwarder_mb=statistics.median(forwarder),
    )
