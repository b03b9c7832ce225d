"""`celery -A bench.sampled worker`: a worker of the platform that samples its own threads.

Timing: background-worker, a thread of its own.
Model: sync.
Guarantee: best-effort; it writes its samples once per second.
Failure: an error ends the sampling, not the worker.
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from celery.signals import worker_ready

from bench.environment import PROFILES, PROFILES_PERIOD
from orchestrator.celery import app

__all__ = ["app"]

PERIOD = 0.005
SHOWN = ("executions", "resources", "tenants", "isolane", "orchestrator", "celery", "kombu")


class Sampler(threading.Thread):
    """Count the stacks of all threads: the calls of our code and of Celery, and the innermost call."""

    def __init__(self, target: Path) -> None:
        super().__init__(name="sampler", daemon=True)
        self._target = target
        self._stacks: Counter[str] = Counter()

    def run(self) -> None:
        """Sample until the worker ends."""
        due = time.monotonic()
        while True:
            time.sleep(PERIOD)
            self._sample()
            if time.monotonic() > due:
                due = time.monotonic() + PROFILES_PERIOD
                self._write()

    def _sample(self) -> None:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != self.ident:
                kind = names.get(ident, "?").rstrip("_-0123456789")
                self._stacks[f"{kind};{_stack(frame)}"] += 1

    def _write(self) -> None:
        unfinished = self._target.with_suffix(".new")
        unfinished.write_text(json.dumps(self._stacks), encoding="utf-8")
        unfinished.replace(self._target)


def _stack(frame: FrameType | None) -> str:
    """Return the calls, the outermost first."""
    found: list[str] = []
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "?"))
        if not found or module.startswith(SHOWN):
            found.append(f"{module}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(found))


@worker_ready.connect
def _start(**_: Any) -> None:
    Sampler(Path(os.environ[PROFILES]) / f"{os.getpid()}.samples").start()
