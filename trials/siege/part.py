"""The siege's end of one of its processes.

Timing: waits until it is ready, and for its result. Model: sync. Guarantee: the process ends with the block, and by
itself when its time is over. Failure: PartFailed with the end of its log.
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


class PartFailed(RuntimeError):
    """A process of the siege could not do its work."""


class Part:
    """One process; begin it with `go`."""

    def __init__(
        self, role: str, wanted: Mapping[str, Any], environ: Mapping[str, str], logs: Path
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
                start_new_session=True,  # Ctrl-C is the siege's, which ends this one in order
            )
        self._say(json.dumps(dict(wanted)))

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
        """Whether it is gone."""
        return self._process.poll() is not None

    def wait_ready(self) -> None:
        """Until it could begin."""
        if self._hear() != "ready":
            raise self._failed()

    def go(self) -> None:
        """Begin."""
        self._say("go")

    def result(self, seconds: float) -> dict[str, Any]:
        """What it has seen; waits for its end."""
        try:
            told, _ = self._process.communicate(timeout=seconds)
            found: dict[str, Any] = json.loads(told)
        except (subprocess.TimeoutExpired, ValueError):
            raise self._failed() from None
        return found

    def _say(self, line: str) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # the missing answer says it, too
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def _hear(self) -> str:
        return self._process.stdout.readline().strip() if self._process.stdout else ""

    def _failed(self) -> PartFailed:
        return PartFailed(
            f"{self._role} has failed:\n{log_tail(self._logs, f'siege-{self._role}')}"
        )
