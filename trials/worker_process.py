"""Start a worker as an operator does, in a session of its own with a log file.

Timing: a process beside the trial.
Model: sync.
Guarantee: best-effort; the caller ends the process.
Failure: bubble.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.env import PROJECT_ROOT


def start_worker(
    module: Sequence[str], *, log: Path, home: Path, environ: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Run `python -m` with these arguments; the files of its runtimes are below `home`."""
    own = {"ISOLANE_LOG_LEVEL": "INFO", "DATABASE_POOL_SIZE": "0", "TMPDIR": str(home)}
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", *module],
            cwd=PROJECT_ROOT,
            env={**os.environ, **own, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
