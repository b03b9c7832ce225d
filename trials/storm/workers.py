"""Workers as an operator starts them, to be killed and stopped in the middle of their work.

Timing: processes beside the storm. Model: sync, one thread. Guarantee: best-effort; what was started is ended by
`stop_all`, not if the storm itself is killed. Failure: a worker that ends though nobody asked is named with its log.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from orchestrator.env import PROJECT_ROOT

STOP_SECONDS = 30.0
TAIL = 2000  # characters of a log


class WorkerProcess:
    """One `celery worker`; everything that its runtimes leave in files is below `folder`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        environ = {**os.environ, "ISOLANE_LOG_LEVEL": "INFO", "DATABASE_POOL_SIZE": "0"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "celery", "-A", "orchestrator", "worker", "-n", name],
                cwd=PROJECT_ROOT,
                env=environ | {"TMPDIR": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, however it went."""
        return self.process.poll() is not None

    def tail(self) -> str:
        """Its last words."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-TAIL:]


class Workers:
    """Those that run, the oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self.running: list[WorkerProcess] = []
        self.gone: list[WorkerProcess] = []

    def start(self) -> WorkerProcess:
        """One more."""
        self._started += 1
        worker = WorkerProcess(f"storm{self._started}@here", self._folder)
        self.running.append(worker)
        return worker

    def kill(self) -> WorkerProcess:
        """End the oldest as a power cut would."""
        worker = self.running.pop(0)
        worker.process.kill()
        worker.process.wait()
        self.gone.append(worker)
        return worker

    def freeze(self) -> WorkerProcess:
        """Stop the oldest where it is; its runtimes go on."""
        worker = self.running.pop(0)
        worker.process.send_signal(signal.SIGSTOP)
        return worker

    def thaw(self, worker: WorkerProcess) -> None:
        """Let it go on: it finds that its lease is over, and ends itself to be restarted."""
        worker.process.send_signal(signal.SIGCONT)
        worker.process.wait(STOP_SECONDS)
        self.gone.append(worker)

    def check(self) -> None:
        """Raise if one has ended by itself."""
        for worker in self.running:
            if worker.has_ended:
                raise RuntimeError(f"the worker {worker.name} ended:\n{worker.tail()}")

    def stop_all(self) -> None:
        """Drain them."""
        for worker in self.running:
            worker.process.terminate()
        for worker in self.running:
            try:
                worker.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self.gone += self.running
        self.running = []
