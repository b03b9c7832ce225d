"""The contenders without a platform: sandboxes that answer one frame, and forks that end at once.

Timing: a process of its own beside the benchmark.
Model: two zygotes or forking programs, as many as there are workers; some threads ask each.
Guarantee: best-effort.
Failure: bubble.
"""

import subprocess
import sys
import time
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

from django.conf import settings

from bench.contenders.base import Contender
from bench.levels.contenders import HOLD, HOLD_SECONDS
from bench.levels.starts import Start, write_start
from isolane.protocol import Open, Ready
from orchestrator.env import PROJECT_ROOT
from resources.runtimes.cgroups.detection import find_cgroups
from resources.runtimes.forked_runtime import START_TIMEOUT
from resources.runtimes.keepalive import KeepaliveTerm
from resources.runtimes.outside_users import outside_user
from resources.runtimes.sandbox import SandboxRunner
from resources.runtimes.seccomp import compile_policy
from resources.runtimes.zygote import Zygote, ZygoteOptions

PARENTS = 2  # that fork: one for each worker of the platform
SLOTS = 4  # of each worker
FORKER = "bench.levels.forker"


class Bare(Contender):
    """Forks by several threads."""

    threads: int

    def __init__(self) -> None:
        self._left = 0

    def fill(self, *, steps: int, runs: int) -> None:
        """Remember the number."""
        self._left = runs

    def drain(self) -> float:
        """Fork so many times."""
        started = time.perf_counter()
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(self._fork, range(self._left), repeat(0.0)))
        return time.perf_counter() - started

    def one(self, *, steps: int) -> float:
        """Fork once; keep it for a while if it is to be held."""
        started = time.perf_counter()
        self._fork(0, HOLD_SECONDS if steps == HOLD else 0.0)
        return time.perf_counter() - started

    @abstractmethod
    def _fork(self, number: int, hold_s: float) -> None:
        """Fork one process, let it begin, keep it so long, and end it."""


class Sandboxes(Bare):
    """Sandboxes with all that those of the level `process` have, and nothing of the platform."""

    threads = PARENTS * SLOTS

    def prepare(self) -> None:
        """Start the zygotes."""
        options = _options()
        wanted = {name: options[name] for name in ZygoteOptions._fields}
        self._zygotes = [Zygote(ZygoteOptions.of(**wanted)) for _ in range(PARENTS)]
        for zygote in self._zygotes:
            zygote.start()

    def ready(self) -> None:
        """Fork once."""
        self._cgroups = find_cgroups().cgroups
        self.one(steps=1)

    def _fork(self, number: int, hold_s: float) -> None:
        asked_at = time.monotonic()
        runner = SandboxRunner(
            zygote=self._zygotes[number % PARENTS],
            keepalive=KeepaliveTerm(),
            cgroups=self._cgroups,
            program=compile_policy(),
            limits=settings.RUN_LIMITS,
            outside=outside_user(number),
        )
        try:
            runner.ask(_OPEN, Ready, START_TIMEOUT)
            start = time.monotonic() - asked_at
            time.sleep(hold_s)
        finally:
            runner.dispose()
        used = runner.usage().cpu_seconds if self._cgroups is not None else 0.0
        write_start(Start(start * 1000, used * 1000))


_OPEN = Open(
    execution_id="bench", tenant_id="bench", user_id="", request_id="", epoch=1, resources=()
)


class Forks(Bare):
    """Forks of programs that have imported what a zygote imports."""

    threads = PARENTS

    def prepare(self) -> None:
        """Start the programs that fork."""
        self._forkers = [_forker() for _ in range(PARENTS)]

    def ready(self) -> None:
        """Fork once."""
        self.one(steps=1)

    def drain(self) -> float:
        """Let each program fork its part of them."""
        parts = [self._left // PARENTS] * PARENTS
        started = time.perf_counter()
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(_let_fork, self._forkers, parts, repeat(0.0)))
        return time.perf_counter() - started

    def _fork(self, number: int, hold_s: float) -> None:
        _let_fork(self._forkers[number % PARENTS], 1, hold_s)


def _options() -> dict[str, Any]:
    """Return the options of the level `process`, so that all import and show the same."""
    runtimes: dict[str, Any] = settings.RUNTIMES
    found: dict[str, Any] = runtimes["process"]["OPTIONS"]
    return found


def _forker() -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", FORKER, *_options()["packages"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT_ROOT,
    )


def _let_fork(forker: "subprocess.Popen[str]", forks: int, hold_s: float) -> None:
    stdin: Any = forker.stdin
    stdout: Any = forker.stdout
    stdin.write(f"{forks} {hold_s}\n")
    stdin.flush()
    if not (line := stdout.readline()):
        raise RuntimeError("a program that forks has ended")
    for seconds in line.split():
        write_start(Start(float(seconds) * 1000, 0.0))
