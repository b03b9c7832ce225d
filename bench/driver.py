"""The process of a contender, as the benchmark starts and calls it.

Timing: waits for each answer.
Model: sync; one call at a time, so that only one contender works.
Guarantee: the process ends with the block, and with its standard input if the benchmark is killed.
Failure: bubble, with the contender's own traceback.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.contenders.base import Skipped
from orchestrator.embedded.child import log_path, log_tail
from orchestrator.env import PROJECT_ROOT

END_SECONDS = 5.0


class ContenderFailed(RuntimeError):
    """A call of a contender failed."""


class Driver:
    """Send calls and receive answers as JSON lines."""

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str],
        logs: Path,
        *,
        program: str = "bench.serve",
    ) -> None:
        self.name = name
        self._logs = logs
        with log_path(logs, f"driver-{name}").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", program, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=PROJECT_ROOT,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C reaches only the benchmark, which ends this process in order
            )

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, name: str, **arguments: Any) -> Any:
        """Make a call and return its result."""
        if self._process.stdin is None or self._process.stdout is None:
            raise ContenderFailed(f"{self.name} has no pipes")
        with contextlib.suppress(BrokenPipeError):  # the missing answer shows it, too
            self._process.stdin.write(json.dumps({"call": name, **arguments}) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ContenderFailed(
                f"{self.name} ended during {name}:\n{log_tail(self._logs, f'driver-{self.name}')}"
            )
        answer = json.loads(line)
        if "skipped" in answer:
            raise Skipped(answer["skipped"])
        if "error" in answer:
            raise ContenderFailed(f"{self.name}: {answer['error']}")
        return answer["value"]
