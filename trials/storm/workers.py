"""Worker processes of a storm or flood trial; some are killed or frozen while they work.

Timing: processes beside the trial.
Model: sync, one thread.
Guarantee: best-effort; `stop_all` ends all workers, but they outlive a trial that is killed.
Failure: a worker that ends without a reason is named with its log.
"""

import signal
import subprocess
from pathlib import Path

from trials.worker_process import start_worker

STOP_SECONDS = 30.0
TAIL = 2000  # characters of a log


class WorkerProcess:
    """One `celery worker`; the files of its runtimes are below `folder`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.process = start_worker(
            ["celery", "-A", "orchestrator", "worker", "-n", name], log=self.log, home=folder
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Return True if the process has ended."""
        return self.process.poll() is not None

    def tail(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:]


class Workers:
    """The running workers, the oldest first."""

    def __init__(self, folder: Path, *, trial: str = "storm") -> None:
        self._folder = folder
        self._trial = trial
        self._started = 0
        self.running: list[WorkerProcess] = []
        self.ended: list[WorkerProcess] = []

    @property
    def pids(self) -> list[int]:
        """Return the process ids of all workers that were ever started."""
        return [worker.pid for worker in (*self.running, *self.ended)]

    def start(self) -> WorkerProcess:
        """Start another worker."""
        self._started += 1
        worker = WorkerProcess(f"{self._trial}{self._started}@here", self._folder)
        self.running.append(worker)
        return worker

    def kill(self) -> WorkerProcess:
        """End the oldest worker with SIGKILL."""
        worker = self.running.pop(0)
        worker.process.kill()
        worker.process.wait()
        self.ended.append(worker)
        return worker

    def freeze(self) -> WorkerProcess:
        """Stop the oldest worker with SIGSTOP; its runtimes continue."""
        worker = self.running.pop(0)
        worker.process.send_signal(signal.SIGSTOP)
        return worker

    def thaw(self, worker: WorkerProcess) -> None:
        """Let it continue: it notices that its lease has run out, and ends itself."""
        worker.process.send_signal(signal.SIGCONT)
        worker.process.wait(STOP_SECONDS)
        self.ended.append(worker)

    def check(self) -> None:
        """Raise an error if a worker has ended by itself."""
        for worker in self.running:
            if worker.has_ended:
                raise RuntimeError(f"the worker {worker.name} ended:\n{worker.tail()}")

    def stop_all(self) -> None:
        """Drain all workers."""
        for worker in self.running:
            worker.process.terminate()
        for worker in self.running:
            try:
                worker.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self.ended += self.running
        self.running = []
