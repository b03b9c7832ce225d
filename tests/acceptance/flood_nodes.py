"""The node of the flood trial: a step does what it is told."""

import os
import signal
import subprocess
import time
from pathlib import Path

from isolane import NodeContext, node

_MB = b"x" * 1024 * 1024
_WORK_SECONDS = 0.2  # so that many sandboxes live at the same time
_DISK_MB = 64  # more than the blueprint allows


@node("flood.step", idempotent=True)
def step(ctx: NodeContext, *, act: str) -> dict[str, str]:
    """Write a file, which no other run may find, and act."""
    own = Path("/tmp/own")
    with own.open("x") as file:
        file.write(ctx.execution_id)
    ACTS[act]()
    found = own.read_text()
    own.unlink()
    return {"execution": found}


def _work() -> None:
    time.sleep(_WORK_SECONDS)


def _leave() -> None:
    os._exit(3)


def _raise() -> None:
    raise ValueError("told to")


def _fill_the_disk() -> None:
    with Path("/tmp/long").open("wb") as file:
        for _ in range(_DISK_MB):
            file.write(_MB)


def _leave_a_process() -> None:
    subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


ACTS = {
    "work": _work,
    "leave": _leave,
    "raise": _raise,
    "fill_the_disk": _fill_the_disk,
    "leave_a_process": _leave_a_process,
    "stop": _stop,
}
