"""Servers, workers and drivers of the contenders, for as long as the benchmark runs.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: what it starts ends with it, also when it is killed; then only its directory stays.
Failure: a child that cannot start ends the benchmark with the tail of its log.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.driver import Driver
from bench.environment import clean
from bench.levels.contenders import BARE
from bench.levels.environment import added
from bench.measure import Progress
from bench.stage import STATISTICS, Stage, platform_environ, platform_workers, running_servers

PROGRAM = "bench.levels.serve"


@dataclass(frozen=True, kw_only=True)
class LevelStage(Stage):
    """A stage with the directory of starts."""

    starts: Path

    def pids(self, name: str) -> dict[str, int]:
        """Return the processes that work for a contender; without a platform, its own."""
        return {name: self.drivers[name].pid} if name in BARE else dict(self.supervisor.pids)


@contextmanager
def stage(
    names: Sequence[str], progress: Progress, *, profile: bool = False
) -> Iterator[LevelStage]:
    """Start everything; the same two workers run the runs of both levels."""
    with (
        running_servers(STATISTICS if profile else None) as (servers, supervisor),
        ExitStack() as stack,
    ):
        logs, starts = servers.paths.logs, servers.paths.home / "starts"
        starts.mkdir()
        environ = {**clean(os.environ), **platform_environ(servers), **added(str(starts))}
        drivers = {
            name: stack.enter_context(Driver(name, environ, logs, program=PROGRAM))
            for name in names
        }
        for name, driver in drivers.items():
            driver.call("prepare")
            progress(f"{name} is prepared")
        for worker in platform_workers(environ, logs if profile else None):
            supervisor.start(worker)
        yield LevelStage(servers=servers, supervisor=supervisor, drivers=drivers, starts=starts)
