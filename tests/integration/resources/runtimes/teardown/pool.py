"""A pool whose runners only wait, and answer what a test has prepared: they start in a moment."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from isolane.channel import Channel
from isolane.protocol import Closed, Ready
from isolane.stream import Stream
from resources.runtimes import folder, shared
from resources.runtimes.folder import PREFIX
from resources.runtimes.shared import SharedBackend, SharedRuntime
from resources.runtimes.zygote import ForkedProcess, Zygote, ZygoteOptions, ZygoteProcess
from tests.placements import ACME, a_placement

PLACEMENT = a_placement()
SIZE = 2
FEW = 25  # entries, up to which a folder is emptied by the worker itself


class SleepingProcess(ZygoteProcess):
    """The parent of one runner: it only reaps it, and only when the worker has released it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def forget_one(self) -> None:
        """Reap the runner."""
        self._process.wait()

    def is_alive(self) -> bool:
        """Return True: the runner is a child of this process."""
        return True

    def stderr_text(self, start: int = 0) -> str:
        """Return nothing: it wrote nothing."""
        return ""


class SleepingZygote(Zygote):
    """Starts `sleep` in place of runners, and keeps the far ends of their streams."""

    def __init__(self) -> None:
        super().__init__(ZygoteOptions())
        self.ends: list[Channel] = []
        self.pids: list[int] = []

    def fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> ForkedProcess:
        """Start one."""
        folder = request["folder"]
        process = subprocess.Popen(
            ["sleep", "60"], start_new_session=True, cwd=folder, env={"HOME": folder}
        )
        self.pids.append(process.pid)
        self.ends.append(Channel(*map(os.dup, descriptors[:2])))
        return ForkedProcess(process.pid, os.pidfd_open(process.pid), SleepingProcess(process))


class Pool:
    """A backend, the far ends of its runners, and what it has of the machine."""

    def __init__(self, temporary: Path, patch: pytest.MonkeyPatch) -> None:
        self.temporary = temporary
        zygote = self._zygote = SleepingZygote()
        patch.setattr(shared, "share_zygote", lambda options, user: zygote)
        patch.setattr(shared, "release_zygote", lambda zygote, user: zygote.stop())
        # The number of files decides which process empties a folder, never the time; a few files must be enough.
        patch.setattr(folder, "_FEW_SECONDS", 60.0)
        patch.setattr(folder, "_FEW_ENTRIES", FEW)
        # Other processes of the machine are none of a test's business, and looking at all of them takes long.
        patch.setattr(psutil, "pids", lambda: [os.getpid(), *zygote.pids])
        patch.setattr(psutil, "_ppid_map", lambda: dict.fromkeys(zygote.pids, os.getpid()))
        self.backend = SharedBackend(level="shared", size=SIZE)
        first = self.start()  # the watchdog is there from now on
        first.kill()
        first.close(5)
        self.settle()
        self._descriptors = _descriptors()

    def start(self) -> SharedRuntime:
        """A runtime that is open."""
        runtime = self.backend.start(PLACEMENT, identity=ACME)
        assert isinstance(runtime, SharedRuntime)
        Stream(self.last_end).send(Ready())
        runtime.open()
        return runtime

    @property
    def last_end(self) -> Channel:
        """Return the runner's end of the last stream."""
        return self._zygote.ends[-1]

    def will_answer(self, *errors: str) -> None:
        """Let the last runner report its teardown with these errors."""
        Stream(self.last_end).send(Closed(errors=errors))

    @staticmethod
    def folder_of(runtime: SharedRuntime) -> Path:
        """Return the folder of its steps."""
        return runtime._child._folder.path

    def settle(self) -> None:
        """Sweep as a worker does, and keep no idle runner."""
        for child in self.backend._pool.idle.take_all():
            child.dispose()
        for end in self._zygote.ends:
            end.close()
        self._zygote.ends.clear()
        self.backend._folders._kept.clear()  # without waiting for the time of the next try
        self.backend.sweep()

    def left(self) -> dict[str, object]:
        """Return the slots, runners, descriptors and folders that are left."""
        found = {
            "slots": len(self.backend._pool.busy),
            "runners not ended": len(self.backend._pool.retired),
            "processes": self._living(),
            "descriptors": _descriptors() - self._descriptors,
            "folders": sorted(path.name for path in self.temporary.glob(f"{PREFIX}*")),
        }
        return {name: value for name, value in found.items() if value}

    def _living(self) -> list[int]:
        """Not even dead and unnoticed."""
        pids = self._zygote.pids
        pids[:] = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        return pids


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
