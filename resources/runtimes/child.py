"""A runner process on this machine and the worker's end of its stream.

It inherits no descriptor, variable or signal. If the worker dies, the stream ends and the runner kills its descendants,
in whatever session, and its own process group; the next worker sweeps the folder. A parent-death signal would not work:
it fires when the *thread* that started the process ends, and the worker's threads come and go.

Timing: starting returns before the runner has imported its packages; kill waits for the end.
Model: exec'd with a clean environment as leader of its own session, never forked from the worker.
Guarantee: nothing of the worker reaches it; its folder and all its processes end with it.
Failure: an error while it is ended is logged, never raised, and does not stop the rest.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import isolane
from isolane.protocol import Cost, Frame, Log, Progress, ProtocolError, Resource, ToRunner
from isolane.stream import Stream, StreamClosedError
from resources.runtimes.base import OnResource, RuntimeStartError, ignore
from resources.runtimes.faults import reported
from resources.runtimes.folder import RuntimeFolder
from resources.runtimes.runner_processes import end_runner_descendants, end_strays
from resources.runtimes.watchdog import Watchdog

# Everything else, credentials in particular, stays with the worker.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
_SOURCE_ROOT = Path(isolane.__file__).resolve().parent.parent
_STDERR_MAX = 2_000  # bytes of a runner's stderr
_END_SECONDS = 5.0  # for a killed runner; it may be traced, or hang in the kernel

F = TypeVar("F", bound=Frame)


class RunnerProcess:
    """One runner process; `kill`, `ended` and `exit_text` are safe from any thread."""

    def __init__(
        self,
        *,
        packages: Sequence[str] = (),
        tasks: Sequence[str] = (),
        paths: Sequence[str | Path] = (),
        watchdog: Watchdog,
    ) -> None:
        self._lock = threading.Lock()
        self._watchdog = watchdog
        self._is_lost = False
        self._has_answered = False
        self._pending: deque[type[Any]] = (
            deque()
        )  # the answers that are still to come, in this order
        options = [f"--path={Path(path).resolve()}" for path in paths]
        options += [f"--package={package}" for package in packages]
        options += [f"--tasks={package}" for package in tasks]
        try:
            self._start(options)
        except OSError as error:
            raise RuntimeStartError(f"the runner cannot be started: {error}") from error

    @property
    def pid(self) -> int:
        """Return the process id, which is that of its group, too."""
        return self._process.pid

    def ended(self) -> bool:
        """Say whether the runner itself is dead; its group may not be."""
        if self._process.returncode is not None:
            return True
        # The dead process is not reaped yet: until then no other process gets its id, and
        # killing its group cannot hit a stranger.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.pid, flags) is not None
        except OSError:  # just reaped by another thread, or unknown: it is of no use either way
            return True

    @property
    def is_lost(self) -> bool:
        """True if the watchdog has ended it because its keepalive ran out; known once it is dead."""
        return self._is_lost

    def kill(self) -> None:
        """End the runner and all that it started, and wait for it; remove its folder, too, if that is quick."""
        with self._lock:
            if self._process.returncode is None:
                self._end()
            with reported("the folder of a runner was not removed"):
                self._folder.remove()

    def dispose(self) -> bool:
        """Kill it, free its resources in this process, and say whether it is gone.

        For the thread that uses the stream, or when it is no longer used. Repeatable.
        """
        self.kill()
        for what, free in (
            ("the folder of a runner was not released", self._folder.release),
            ("the stream of a runner was not closed", self.stream.close),
            ("the stderr of a runner was not closed", self._stderr.close),
        ):
            with reported(what):
                free()
        return self._process.returncode is not None

    def exit_text(self) -> str:
        """Return how a killed or dead runner ended, in words."""
        code = self._process.returncode
        if code is None or code >= 0:
            return f"exit code {code}"
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:  # most real-time signals have no name
            return f"signal {-code}"

    def stderr_text(self) -> str:
        """Return what the runner wrote to stderr before it served, normally nothing."""
        written = b""
        with reported("the stderr of a runner was not read"):
            self._stderr.seek(0)
            written = self._stderr.read(_STDERR_MAX)
        return written.decode("utf-8", "replace").strip()

    def wipe(self) -> bool:
        """Empty its folder, so that the next execution finds no files; say whether it is empty."""
        return self._folder.wipe()

    def ask(
        self, frame: ToRunner, answer: type[F], timeout: float, on_resource: OnResource = ignore
    ) -> F:
        """Send a frame and return its answer; on anything else, kill it and raise."""
        deadline = time.monotonic() + timeout
        self.post(frame, answer, timeout)
        return self.answer(answer, deadline - time.monotonic(), on_resource)

    def post(self, frame: ToRunner, answer: type[F], timeout: float) -> None:
        """Send a frame whose answer is read later; if that fails, kill it and raise."""
        what = f"{type(frame).__name__} was not sent"
        try:
            self.stream.send(frame, timeout)
        except TimeoutError:
            raise self._failed(what, f"it did not read within {timeout:g} s") from None
        except StreamClosedError:
            raise self._failed(what, "it died") from None
        except ProtocolError as error:
            raise self._failed(what, str(error)) from None
        self._pending.append(answer)

    @property
    def has_answered(self) -> bool:
        """True if it has imported its packages and serves."""
        return self._has_answered

    @property
    def is_pending(self) -> bool:
        """True if an answer is still to come."""
        return bool(self._pending)

    def answered(self, frame: Frame) -> None:
        """Accept a frame as the answer that is due next, or raise ProtocolError."""
        if not self._pending:
            raise ProtocolError(f"it sent {type(frame).__name__} without being asked")
        expected = self._pending.popleft()
        if not isinstance(frame, expected):
            raise ProtocolError(f"it sent {type(frame).__name__} instead of {expected.__name__}")
        self._has_answered = True

    def answer(self, answer: type[F], timeout: float, on_resource: OnResource = ignore) -> F:
        """Return the answer to a posted frame, after those before it; on anything else, kill it and raise."""
        deadline, what = time.monotonic() + timeout, f"no {answer.__name__} came"
        try:
            while True:
                reply = self._reply(deadline, on_resource)
                self.answered(reply)
                if isinstance(reply, answer):
                    return reply
        except TimeoutError:
            raise self._failed(what, f"it did not answer within {timeout:g} s") from None
        except StreamClosedError:
            raise self._failed(what, "it died") from None
        except ProtocolError as error:
            raise self._failed(what, f"it broke the protocol: {error}") from None

    def _failed(self, what: str, reason: str) -> RuntimeStartError:
        self.kill()
        details = self.stderr_text() or self.exit_text()
        return RuntimeStartError(f"{what}, {reason}: {details}")

    def _end(self) -> None:
        """End it part by part: an error in one must not keep the others from being done."""
        complete = False
        with reported("what a runner has started was not ended"):
            complete = end_runner_descendants(self.pid)
        with (
            reported("the group of a runner was not killed"),
            contextlib.suppress(ProcessLookupError),
        ):
            os.killpg(self.pid, signal.SIGKILL)
        with reported("a runner was not killed"):
            self._process.kill()
        with reported("a runner did not end"):
            self._process.wait(_END_SECONDS)
        with reported("the watchdog was not informed of a runner's end"):
            self._is_lost = self._watchdog.lapsed_since(self._watched_at)
            self._watchdog.forget(self.pid)
        if not complete:  # it died before, and its processes are no longer its descendants
            with reported("what a runner has left was not ended"):
                end_strays(self._folder.path)

    def _reply(self, deadline: float, on_resource: OnResource) -> Frame:
        while True:
            reply = self.stream.receive(deadline - time.monotonic())
            if isinstance(reply, Resource):
                on_resource(reply)
            # A thread that a step left may still send.
            elif not isinstance(reply, Log | Progress | Cost):
                return reply

    def _start(self, options: list[str]) -> None:
        """Create folder, stream and process; if one of them fails, undo the others."""
        with contextlib.ExitStack() as undo:
            self._folder = RuntimeFolder()
            undo.callback(self._folder.release)
            self._stderr = undo.enter_context(tempfile.TemporaryFile())
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            self._watched_at = time.monotonic()
            with theirs:
                self.stream = Stream(ours)
                self._process = self._spawn(theirs, options)
                undo.callback(self.kill)
            self._watchdog.watch(self.pid, self._folder.path)
            undo.pop_all()

    def _spawn(self, sock: socket.socket, options: list[str]) -> subprocess.Popen[bytes]:
        # -P: nothing is imported from the working directory, where steps may write.
        command = [sys.executable, "-P", "-m", "isolane.runner", f"--fd={sock.fileno()}"]
        return subprocess.Popen(  # noqa: S603 - the command is ours, the names an operator's
            command + options,
            pass_fds=[sock.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            cwd=self._folder.path,
            env=self._environment(),
        )

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        folder = str(self._folder.path)
        return inherited | {"PYTHONPATH": str(_SOURCE_ROOT), "HOME": folder, "TMPDIR": folder}
