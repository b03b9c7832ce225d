"""Workers as an operator starts them, each with a wrong clock, and whom they have started.

Timing: processes beside the chaos. Model: sync, one thread. Guarantee: best-effort; what was started is ended by
`stop_all`, not if the chaos itself is killed. Failure: a worker that ends though nobody asked is a finding.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from executions.worker.loops.lease import EXIT_FENCED
from orchestrator.env import PROJECT_ROOT
from trials.chaos import plan
from trials.chaos.diary import Diary
from trials.chaos.findings import Finding, Kind
from trials.chaos.worker import SKEW

STOP_SECONDS = 30.0
EXIT_UNAVAILABLE = 2
CONCURRENCY, CAPACITY = 10, 8
READY = '"WORKER_READY"'  # in the log of one that has registered


class Worker:
    """One process in one slot; what its runtimes leave in files is below `home`."""

    def __init__(self, name: str, slot: int, *, skew: float, logs: Path, home: Path) -> None:
        self.name = name
        self.slot = slot
        self.log = logs / f"{name}.log"
        self.began = time.monotonic()
        self.thaws_at: float | None = None  # stopped until then
        self.was_struck = False  # it, or a child of it
        environ = {
            "ISOLANE_LOG_LEVEL": "INFO",
            "DATABASE_POOL_SIZE": "0",
            "ISOLANE_WORKER_CONCURRENCY": str(CONCURRENCY),
            "ISOLANE_WORKER_CAPACITY": str(CAPACITY),
            "TMPDIR": str(home),
            SKEW: str(skew),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "trials.chaos.worker", name],
                cwd=PROJECT_ROOT,
                env=os.environ | environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_been_ready(self) -> bool:
        """Whether it has registered, as its log says."""
        return READY in self.log.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[psutil.Process]:
        """Whom it has started, and those whom they have, the oldest first."""
        try:
            found = psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []
        return sorted(
            filter(_runs, found), key=lambda process: (process.create_time(), process.pid)
        )

    def stop(self, until: float) -> None:
        """Stop it where it is; its children go on."""
        self.was_struck = True
        self.thaws_at = until
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.thaws_at = None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.thaws_at = None
        self.process.kill()
        self.process.wait()


class Workers:
    """One in each slot; who ends is replaced."""

    def __init__(self, number: int, *, seed: int, logs: Path, home: Path, diary: Diary) -> None:
        self._seed = seed
        self._logs = logs
        self._home = home
        self._diary = diary
        self._started = 0
        self._family: set[psutil.Process] = set()  # all children ever seen
        self.findings: list[Finding] = []
        self.slots = [self._start(slot) for slot in range(number)]

    @property
    def names(self) -> list[str]:
        """Of those that run."""
        return [worker.name for worker in self.slots]

    def replace(self, slot: int) -> Worker:
        """Start another one in this slot; the one before has ended."""
        self.slots[slot] = self._start(slot)
        return self.slots[slot]

    def tend(self, *, excuses: Callable[[Worker], bool]) -> None:
        """Replace those that have ended by themselves; remember whom they started."""
        for worker in self.slots:
            self._family.update(worker.children())
            status = worker.process.poll()
            if status is None:
                continue
            self._judge(worker, status, excused=excuses(worker))
            self.replace(worker.slot)

    def _judge(self, worker: Worker, status: int, *, excused: bool) -> None:
        how = f"{worker.name} (pid {worker.pid}) ended by itself with status {status}"
        if status == EXIT_FENCED:
            self._diary.note(how, count="workers that ended themselves for want of their lease")
        elif status == EXIT_UNAVAILABLE and excused and not worker.has_been_ready:
            self._diary.note(how, count="workers that could not start")
        else:
            self._diary.note(f"FINDING: {how}")
            self.findings.append(Finding(kind=Kind.WORKER, about=how))

    def thaw_all(self) -> None:
        """Let those go on that are stopped."""
        for worker in self.slots:
            if worker.thaws_at is not None:
                worker.thaw()

    def stop_all(self) -> None:
        """Drain them; who does not end well is a finding."""
        self.thaw_all()
        for worker in self.slots:
            self._family.update(worker.children())
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
            self.findings.append(Finding(kind=Kind.WORKER, about=about))
        self.slots = []

    def left_running(self) -> list[psutil.Process]:
        """Of all children ever seen, those that still run."""
        return sorted(filter(_runs, self._family), key=lambda process: process.pid)

    def _start(self, slot: int) -> Worker:
        self._started += 1
        skew = plan.skew(self._seed, self._started)
        name = f"chaos{self._started}@here"
        worker = Worker(name, slot, skew=skew, logs=self._logs, home=self._home)
        self._diary.note(f"{name} (pid {worker.pid}) starts, its clock {skew:+.1f} s")
        return worker


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
