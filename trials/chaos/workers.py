"""Worker processes of a chaos trial, each with a wrong clock, and their children.

Timing: processes beside the trial.
Model: sync, one thread.
Guarantee: best-effort; `stop_all` ends all workers, and the kernel does if the trial is killed.
Failure: a worker that ends without a reason is a finding.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from executions.worker.loops.lease import EXIT_FENCED
from foundation.process_states import ENDED
from trials.chaos import plan
from trials.chaos.findings import Finding, FindingKind
from trials.chaos.timeline import Timeline
from trials.chaos.worker import SKEW
from trials.worker_process import start_worker

STOP_SECONDS = 30.0
EXIT_UNAVAILABLE = 2
CONCURRENCY, CAPACITY = 10, 8
READY = '"WORKER_READY"'  # in the log of a registered worker


class Worker:
    """One process in one slot; the files of its runtimes are below `home`."""

    def __init__(self, name: str, slot: int, *, skew: float, logs: Path, home: Path) -> None:
        self.name = name
        self.slot = slot
        self.log = logs / f"{name}.log"
        self.began = time.monotonic()
        self.frozen_until: float | None = None  # by the monotonic clock
        self.was_faulted = False  # the worker or one of its children
        self.process = start_worker(
            ["trials.chaos.worker", name],
            log=self.log,
            home=home,
            environ={
                "ISOLANE_WORKER_CONCURRENCY": str(CONCURRENCY),
                "ISOLANE_WORKER_CAPACITY": str(CAPACITY),
                SKEW: str(skew),
            },
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_been_ready(self) -> bool:
        """Return True if its log shows that it has registered."""
        return READY in self.log.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[psutil.Process]:
        """Return its child processes and their children, the oldest first."""
        try:
            found = psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []
        return sorted(
            filter(_runs, found), key=lambda process: (process.create_time(), process.pid)
        )

    def freeze(self, until: float) -> None:
        """Stop it with SIGSTOP; its children continue."""
        self.was_faulted = True
        self.frozen_until = until
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        self.frozen_until = None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.frozen_until = None
        self.process.kill()
        self.process.wait()


class Workers:
    """One worker per slot; a worker that ends is replaced."""

    def __init__(
        self, number: int, *, seed: int, logs: Path, home: Path, timeline: Timeline
    ) -> None:
        self._seed = seed
        self._logs = logs
        self._home = home
        self._timeline = timeline
        self._started = 0
        self._children: set[psutil.Process] = set()  # all that were ever seen
        self.pids: list[int] = []  # of all workers that were ever started
        self.findings: list[Finding] = []
        self.slots = [self._start(slot) for slot in range(number)]

    @property
    def names(self) -> list[str]:
        """Return the names of the running workers."""
        return [worker.name for worker in self.slots]

    def replace(self, slot: int) -> Worker:
        """Start a new worker in this slot; the one before has ended."""
        self.slots[slot] = self._start(slot)
        return self.slots[slot]

    def replace_ended(self, *, is_excused: Callable[[Worker], bool]) -> None:
        """Replace workers that have ended by themselves; remember all children."""
        for worker in self.slots:
            self._children.update(worker.children())
            status = worker.process.poll()
            if status is None:
                continue
            self._note_end(worker, status, excused=is_excused(worker))
            self.replace(worker.slot)

    def _note_end(self, worker: Worker, status: int, *, excused: bool) -> None:
        how = f"{worker.name} (pid {worker.pid}) ended by itself with status {status}"
        if status == EXIT_FENCED:
            self._timeline.note(how, count="workers that ended themselves after losing their lease")
        elif status == EXIT_UNAVAILABLE and excused and not worker.has_been_ready:
            self._timeline.note(how, count="workers that could not start")
        else:
            self._timeline.note(f"FINDING: {how}")
            self.findings.append(Finding(kind=FindingKind.WORKER, about=how))

    def thaw_all(self) -> None:
        """Let all frozen workers continue."""
        for worker in self.slots:
            if worker.frozen_until is not None:
                worker.thaw()

    def stop_all(self) -> None:
        """Drain all workers; a worker that does not end well is a finding."""
        self.thaw_all()
        for worker in self.slots:
            self._children.update(worker.children())
            worker.process.terminate()
        for worker in self.slots:
            try:
                status = worker.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                about = f"{worker.name} (pid {worker.pid}) did not end within {STOP_SECONDS:.0f} s"
            else:
                if status == 0:
                    continue
                about = f"{worker.name} (pid {worker.pid}) ended with status {status} on SIGTERM"
            self.findings.append(Finding(kind=FindingKind.WORKER, about=about))
        self.slots = []

    def running_children(self) -> list[psutil.Process]:
        """Return all children ever seen that still run."""
        return sorted(filter(_runs, self._children), key=lambda process: process.pid)

    def _start(self, slot: int) -> Worker:
        self._started += 1
        skew = plan.skew(self._seed, self._started)
        name = f"chaos{self._started}@here"
        worker = Worker(name, slot, skew=skew, logs=self._logs, home=self._home)
        self.pids.append(worker.pid)
        self._timeline.note(f"{name} (pid {worker.pid}) starts, its clock {skew:+.1f} s")
        return worker


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() not in ENDED
    return False
