"""A runner that was forked by the zygote, and the worker's end of its stream.

Timing: starting returns before the runner serves; kill waits for the end.
Model: one thread uses the stream; `kill`, `ended` and `exit_text` are safe from any.
Guarantee: it inherits nothing of the worker; all its processes end with it.
Failure: an error while it is ended is logged, never raised, and does not stop the rest.
"""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from isolane.channel import Channel, channel_pair
from isolane.protocol import Cost, Frame, Log, Progress, ProtocolError, Resource, ToRunner
from isolane.results import Code
from isolane.sandbox.report import ExitReport
from isolane.stream import Stream, StreamClosedError
from resources.runtimes.base import OnResource, RuntimeStartError, ignore
from resources.runtimes.faults import reported
from resources.runtimes.zygote import ForkedProcess, SandboxRefused, Zygote, ZygoteGone

END_SECONDS = 5.0  # for a killed runner; it may be traced, or hang in the kernel
_REPORT_SECONDS = 1.0  # for the zygote to report its end
_REPORT_BYTES = 8192
_FRAMES_MAX = 10_000  # before an answer; reading them is the worker's processor time

F = TypeVar("F", bound=Frame)


class Runner(ABC):
    """One runner, from its fork to its end."""

    stream: Stream
    gate_channel: Channel  # of a gated one, until its user takes it

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_answered = False
        self._pending: deque[type[Any]] = deque()  # the answers to come, in this order
        self._forked: ForkedProcess | None = None
        self._pid = 0
        self._line_lock = threading.Lock()  # held for moments only
        self._reports: list[ExitReport] = []
        self._is_orphan = False  # its zygote has died
        self._is_over = False  # killed, and its processes are gone
        self._started_at = time.monotonic()

    def _fork(
        self,
        zygote: Zygote,
        request: dict[str, Any],
        descriptors: Sequence[int] = (),
        *,
        gated: bool = False,
    ) -> None:
        """Let the zygote fork it, or the next one if that is gone; if that fails, nothing is left of it here."""
        try:
            self._fork_once(zygote, request, descriptors, gated=gated)
        except ZygoteGone:
            # With a stream of its own: the first zygote may have forked a runner before it died.
            self._fork_once(zygote, request, descriptors, gated=gated)

    def _fork_once(
        self, zygote: Zygote, request: dict[str, Any], descriptors: Sequence[int], *, gated: bool
    ) -> None:
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as given_away:
            gate: tuple[int, ...] = ()
            if gated:
                self.gate_channel, far_end = channel_pair()
                undo.callback(self.gate_channel.close)
                gate = (far_end.reading, far_end.writing)
                given_away.enter_context(far_end)
            ours, theirs = channel_pair()
            undo.callback(ours.close)
            with theirs:
                self._lifeline, line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                undo.callback(self._lifeline.close)
                with line:
                    given = [theirs.reading, theirs.writing, line.fileno(), *gate, *descriptors]
                    self._forked = zygote.fork(request, given)
                    undo.callback(self._abandon)
                    self._pid = self._forked.pid
            self.stream = Stream(ours)
            undo.pop_all()
        # Packages that are imported after the fork take a moment, and may fail.
        self._has_answered = not zygote.late

    @property
    def pid(self) -> int:
        """Return the process id that the worker knows it by; once it is disposed of, that may be another's."""
        return self._pid

    def ended(self) -> bool:
        """Say whether its process is dead; what it has started may not be."""
        return self._is_over or self._wait(0.0)

    @property
    @abstractmethod
    def is_lost(self) -> bool:
        """True if it was ended for want of a keepalive, or of its zygote; known once it is dead."""

    def kill(self) -> None:
        """End the runner and all that it started, and wait for it."""
        with self._lock:
            if not self._is_over:
                self._end()
                with reported("a killed runner did not end"):
                    self._is_over = self._wait(END_SECONDS)
                with reported("the end of a runner was not read"):
                    self._read_reports()
            self._ended()

    def dispose(self) -> bool:
        """Kill it, free its resources in this process, and say whether it is gone.

        For the thread that uses the stream, or when it is no longer used. Repeatable.
        """
        self.kill()
        with reported("the stream of a runner was not closed"):
            self.stream.close()
        if self._is_over:
            with reported("a runner was not released"):
                self._release()
        return self._is_over

    @abstractmethod
    def _end(self) -> None:
        """End it and all that it started, without waiting."""

    @abstractmethod
    def _ended(self) -> None:
        """Remove what only it needed; called again if that was not possible."""

    def _signal(self, number: int) -> None:
        if self._forked is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._forked.pidfd, number)

    def _wait(self, seconds: float) -> bool:
        forked = self._forked
        # A descriptor that another thread has released meanwhile counts as ready.
        return forked is None or _is_ready(forked.pidfd, seconds)

    def _abandon(self) -> None:
        """End one that cannot be used, as its start has failed behind the fork."""
        self._signal(signal.SIGKILL)
        self._wait(END_SECONDS)
        self._release()

    def _release(self) -> None:
        """Close what is ours, once: from then on its process id may be another's."""
        with self._lock:
            if self._forked is None:
                return
            forked, self._forked = self._forked, None
            with contextlib.ExitStack() as each:  # all of it, though one fails
                each.callback(forked.zygote.forget_one)
                each.callback(os.close, forked.pidfd)
                each.enter_context(self._line_lock)
                each.callback(self._lifeline.close)

    # --- how it ended
    def report(self) -> ExitReport:
        """Return how a dead runner ended: the first that was reported, since that knows most."""
        return self._reports[0] if self._reports else ExitReport()

    def _read_reports(self) -> None:
        deadline = time.monotonic() + _REPORT_SECONDS
        while not (self._reports and self._reports[-1].final):
            if not _is_ready(self._lifeline.fileno(), deadline - time.monotonic()):
                return
            try:
                message = self._lifeline.recv(_REPORT_BYTES)
            except ConnectionResetError:
                continue  # a keepalive was not read; what came before is still there
            if not message:
                self._is_orphan = True
                return
            self._reports.append(ExitReport.decode(message))

    def wait_for_report(self) -> None:
        """Wait, for a moment, for what will be known of a runner whose stream has ended."""
        return  # this process is the runner itself: its end is known at once

    def exit_text(self) -> str:
        """Return how a killed or dead runner ended, in words."""
        code = self.report().exit_code
        if code is None:  # its zygote is gone, or too slow
            return "how is not known"
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:  # most real-time signals have no name
            return f"signal {-code}"

    def cause_of_death(self) -> tuple[Code, str]:
        """Return the failure of the step that was running in a dead runner."""
        return Code.UNKNOWN_ERROR, f"the runtime died ({self.exit_text()})"

    def stderr_text(self) -> str:
        """Return what was written to stderr before it served, normally nothing."""
        forked = self._forked
        return "" if forked is None else forked.zygote.stderr_text(forked.stderr_from)

    # --- its stream
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
            self.wait_for_report()
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
            self.wait_for_report()
            raise self._failed(what, "it died") from None
        except ProtocolError as error:
            raise self._failed(what, f"it broke the protocol: {error}") from None

    def _failed(self, what: str, reason: str) -> RuntimeStartError:
        self.kill()
        if self.report().reason:
            return SandboxRefused(self.report())
        details = self.stderr_text() or self.exit_text()
        return RuntimeStartError(f"{what}, {reason}: {details}")

    def _reply(self, deadline: float, on_resource: OnResource) -> Frame:
        for _ in range(_FRAMES_MAX):
            reply = self.stream.receive(deadline - time.monotonic())
            if isinstance(reply, Resource):
                on_resource(reply)
            # A thread that a step left may still send.
            elif not isinstance(reply, Log | Progress | Cost):
                return reply
        raise ProtocolError(f"more than {_FRAMES_MAX} frames before an answer")


def _is_ready(descriptor: int, seconds: float) -> bool:
    poll = select.poll()  # `select` knows descriptors below 1024 only
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0.0) * 1000))
