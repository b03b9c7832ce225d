"""A runner of the level `shared`: a process of the worker's user, with a folder of its own.

It inherits no descriptor, variable or signal. If the worker dies, the stream ends and the runner kills its descendants,
in whatever session, and its own process group; the next worker sweeps the folder.

Timing: starting returns before the runner serves; kill waits for the end.
Model: see resources.runtimes.runner; leader of its own session.
Guarantee: its folder and all its processes end with it.
Failure: an error while it is ended is logged, never raised, and does not stop the rest.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence

from isolane.limits import Usage
from resources.runtimes.faults import reported
from resources.runtimes.folder import RuntimeFolder
from resources.runtimes.process_usage import anonymous_mb, reset_peak, used_by
from resources.runtimes.runner import END_SECONDS, Runner
from resources.runtimes.runner_processes import end_runner_descendants, end_strays
from resources.runtimes.watchdog import Watchdog
from resources.runtimes.zygote import Zygote


class SharedRunner(Runner):
    """One runner that is reused within its tenant."""

    def __init__(self, *, zygote: Zygote, watchdog: Watchdog) -> None:
        super().__init__()
        self._watchdog = watchdog
        self._is_lost = False
        self._used_before = Usage()
        self.runs = 0
        self._first_ram_mb = 0.0  # when it began its first run
        self.grown_mb = 0.0  # since then, until the end of its last run
        self._is_alone = False  # stopped, and all that it has started is gone
        self._watched_at = time.monotonic()
        with contextlib.ExitStack() as undo:
            self._folder = RuntimeFolder()
            undo.callback(self._folder.release)
            self._fork(zygote, {"folder": str(self._folder.path)})
            undo.callback(self.dispose)
            self._watchdog.watch(self.pid, self._folder.path)
            undo.pop_all()

    @property
    def is_lost(self) -> bool:
        """True if the watchdog has ended it because its keepalive ran out; known once it is dead."""
        return self._is_lost

    # --- what one execution uses of it
    def begin_run(self) -> None:
        """Count from now on what an execution uses."""
        self.runs += 1
        if self.runs == 1:
            self._first_ram_mb = anonymous_mb(self.pid)
        self._used_before = used_by(self.pid)
        reset_peak(self.pid)

    def end_run(self) -> Usage:
        """Return what the execution has used, and note by how much the runner has grown."""
        self.grown_mb = anonymous_mb(self.pid) - self._first_ram_mb
        used = used_by(self.pid)
        seconds = max(used.cpu_seconds - self._used_before.cpu_seconds, 0.0)
        return Usage(cpu_seconds=seconds, peak_ram_mb=used.peak_ram_mb)

    # --- its end
    def note_alone(self) -> None:
        """Note that it is stopped, and all that it has started is gone."""
        self._is_alone = True

    def dispose(self) -> bool:
        """Do as every runner does, and release its folder."""
        with reported("the folder of a runner was not released"):
            self.kill()
            self._folder.release()
        return super().dispose()

    def wipe(self) -> bool:
        """Empty its folder, so that the next execution finds no files; say whether it is empty."""
        return self._folder.wipe()

    def _ended(self) -> None:
        """Remove its folder, if that is quick."""
        with reported("the folder of a runner was not removed"):
            self._folder.remove()

    def _end(self) -> None:
        """End it part by part: an error in one must not keep the others from being done."""
        complete = has_id = False
        with reported("the state of a runner was not read"):
            has_id = self._has_its_id()
        if has_id:
            with reported("what a runner has started was not ended"):
                complete = self._is_alone or self.pid in end_runner_descendants(self.pid)
            with (
                reported("the group of a runner was not killed"),
                contextlib.suppress(ProcessLookupError),
            ):
                os.killpg(self.pid, signal.SIGKILL)
        with reported("a runner was not killed"):
            self._signal(signal.SIGKILL)
        with reported("a runner did not end"):
            self._wait(END_SECONDS)
        with reported("the watchdog was not informed of a runner's end"):
            self._is_lost = self._watchdog.lapsed_since(self._watched_at)
            self._watchdog.forget(self.pid)
        if not complete:  # it died before, and its processes are no longer its descendants
            with reported("what a runner has left was not ended"):
                end_strays(self._folder.path)

    def _has_its_id(self) -> bool:
        """Say whether its process id is certainly its own: it lives, or its zygote has not reaped it."""
        forked = self._forked
        return forked is not None and (not self._wait(0.0) or forked.zygote.is_alive())


def end_descendants_of(children: Sequence[SharedRunner]) -> None:
    """Stop runners that will be ended, and end all that they have started: that costs little more than for one."""
    living = {child.pid: child for child in children if not child.ended()}
    with reported("what some runners have started was not ended"):
        for pid in end_runner_descendants(*living):
            living[pid].note_alone()
