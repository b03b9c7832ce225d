"""The state of a running stack: a file for `status` and `down`, and the lock against a second stack."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from foundation.process_states import ENDED
from orchestrator.embedded.errors import AlreadyRunning, EmbeddedError
from orchestrator.embedded.private_files import replace_private

# The kernel gives start times relative to boot, whose wall-clock time shifts when NTP corrects it.
START_TIME_TOLERANCE = 2.0  # seconds


@dataclass(frozen=True, kw_only=True)
class StackState:
    """A running stack as its supervisor describes it."""

    pid: int
    started_at: float
    web_url: str = ""
    admin_url: str = ""
    docs_url: str = ""
    flower_url: str = ""
    cache_address: str = ""
    # For processes that are started by hand beside the stack, credentials as files; orchestrator.env reads it.
    environment: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(
        default_factory=dict
    )  # the node names of the workers among them

    @property
    def is_alive(self) -> bool:
        """True if that same process runs, and not another one with its pid."""
        try:
            process = psutil.Process(self.pid)
            if process.status() in ENDED:
                return False
            return abs(process.create_time() - self.started_at) < START_TIME_TOLERANCE
        except psutil.NoSuchProcess:
            return False


def own_start_time() -> float:
    """Return `started_at` of the calling process."""
    return psutil.Process().create_time()


def write_state(path: Path, state: StackState) -> None:
    """Write `state` (0600; it has the paths of credentials)."""
    replace_private(path, json.dumps(asdict(state), indent=2) + "\n")


def read_running(path: Path) -> StackState | None:
    """Return the stack described in `path` if its supervisor is alive; raise if it is another user's."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        state = StackState(**content)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    except PermissionError:
        raise EmbeddedError(
            f"{path} may not be read by uid {os.geteuid()}: it belongs to another user's stack. "
            "Run as that user, or set ISOLANE_HOME"
        ) from None
    return state if state.is_alive else None


def remove_state(path: Path) -> None:
    """Remove the file; no error if there is none."""
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def stack_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a stack, or raise `AlreadyRunning`.

    The kernel drops it with its holder, so a crash leaves no stale lock. The file stays: removing
    it would let two processes each lock a file of the same name.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(_holder(descriptor)) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip()
    return int(text) if text.isdigit() else None
