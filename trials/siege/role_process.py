"""One process of the siege, as the siege starts and controls it.

Timing: waits until the process is ready, and for its result.
Model: sync.
Guarantee: the process ends with the block, and by itself when its time is over.
Failure: RoleFailed with the end of its log.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench import environment
from orchestrator.embedded.child import log_path, log_tail
from orchestrator.env import PROJECT_ROOT


class RoleFailed(RuntimeError):
    """A process of the siege failed."""


class RoleProcess:
    """A process with one role; it is prepared when made and works after `go`."""

    def __init__(
        self, role: str, task: Mapping[str, Any], environ: Mapping[str, str], logs: Path
    ) -> None:
        self._role = role
        self._logs = logs
        with log_path(logs, f"siege-{role}").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "trials.siege.serve", role],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=PROJECT_ROOT,
                env=environment.clean(environ),
                start_new_session=True,  # Ctrl-C reaches only the siege, which ends this process in order
            )
        self._send(json.dumps(dict(task)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def ended(self) -> bool:
        """Return True if the process has ended."""
        return self._process.poll() is not None

    def wait_ready(self) -> None:
        """Wait until the process can begin."""
        if self._receive() != "ready":
            raise self._failed()

    def go(self) -> None:
        """Let the process begin."""
        self._send("go")

    def result(self, seconds: float) -> dict[str, Any]:
        """Wait for the end of the process and return its result."""
        try:
            output, _ = self._process.communicate(timeout=seconds)
            found: dict[str, Any] = json.loads(output)
        except (subprocess.TimeoutExpired, ValueError):
            raise self._failed() from None
        return found

    def _send(self, line: str) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # the missing answer shows it, too
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def _receive(self) -> str:
        return self._process.stdout.readline().strip() if self._process.stdout else ""

    def _failed(self) -> RoleFailed:
        return RoleFailed(
            f"{self._role} has failed:\n{log_tail(self._logs, f'siege-{self._role}')}"
        )
