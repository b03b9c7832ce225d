"""The runner's side of the protocol: one execution at a time.

A daemon thread reads, so that CANCEL and the end of the stream are seen while a step blocks. At CLOSE all that an
execution left open is torn down, remaining processes are killed, and leftovers (threads, processes, sockets) are
reported. Reports on resources are sent before the answer to OPEN, RUN and CLOSE: an opened handle at once, all else
within a second.

Timing: a step runs until it returns; the worker kills it at its deadline.
Model: the main thread runs steps, `async def` ones on the execution's event loop; a daemon thread reads.
Guarantee: every RUN is answered by one RESULT, whatever the step raises; CLOSE tears down what is open.
Failure: if the worker is gone, descendants and process group are killed; a broken protocol ends the process.
"""

import gc
import os
import queue
import signal
import sys
import threading
from dataclasses import replace
from typing import NoReturn

from isolane.baseline import Baseline, end_timers
from isolane.capture import Capture
from isolane.deferred_frames import DEFERRABLE, DeferredFrames
from isolane.descendants import kill_descendants
from isolane.excess import failure_within
from isolane.limits import RunLimits
from isolane.node import NodeRegistry
from isolane.output_lock import OutputLock
from isolane.protocol import (
    Cancel,
    Close,
    Closed,
    Describe,
    Frame,
    Keepalive,
    Level,
    Log,
    NodeCatalogue,
    Open,
    ProtocolError,
    Ready,
    Resource,
    Run,
)
from isolane.results import Code, StepError, StepResult
from isolane.runner_context import RunnerContext
from isolane.stream import Stream
from isolane.text import storable

EXIT_PROTOCOL = 4
# Log lines captured and sent of one attempt; the worker counts for itself, and accepts fewer.
LINES_MAX = 2000
_ERRORS_MAX, _ERROR_MAX = 50, 200  # of a teardown: number and characters
_DEFER_SECONDS = 1.0  # the longest time that a deferred frame waits for the next answer


class Session:
    """Serves the frames of one stream."""

    def __init__(
        self, stream: Stream, registry: NodeRegistry, *, limits: RunLimits | None = None
    ) -> None:
        self._stream = stream
        self._registry = registry
        self._limits = limits  # of its only execution
        self._is_reused = limits is None  # it serves other executions after this one
        self._capture = Capture(self._log, OutputLock(stream.sending))
        self._inbox: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._execution: RunnerContext | None = None
        self._baseline: Baseline | None = None
        self._running: Run | None = None
        self._deferred = DeferredFrames(stream)
        self._modules = 0  # loaded at the last collection
        self._lines = 0  # sent for the running attempt
        self._is_granted = False  # the open execution has resources
        # Of the execution whose OPEN was read last:
        self._is_open = False  # and not closed since
        self._is_cancelled = False

    def install(self) -> None:
        """Capture what Python code prints and logs, and keep forked children off the stream."""
        self._capture.install()
        os.register_at_fork(after_in_child=self._forked)

    def install_pipes(self) -> None:
        """Capture what is written to descriptors 1 and 2, too."""
        self._capture.install_pipes()

    def serve(self, packages: dict[str, str], python: str) -> NoReturn:
        """Answer frames until the stream ends, and the process with it."""
        threading.Thread(target=self._read, name="isolane-reader", daemon=True).start()
        while True:
            # In a call of its own: no frame, with secrets in it, is referenced while the next is awaited.
            self._answer(self._inbox.get(), packages, python)

    def _answer(self, frame: Frame, packages: dict[str, str], python: str) -> None:
        match frame:
            case Describe():
                nodes = tuple(node.description() for node in self._registry)
                self._stream.send(NodeCatalogue(nodes=nodes, packages=packages, python=python))
            case Open() if self._execution is None:
                self._open(frame)
            case Run() if self._execution is not None:
                self._stream.send(self._run(self._execution, frame))
            case Close() if self._execution is not None:
                self._close(self._execution)
            case _:
                os._exit(EXIT_PROTOCOL)

    def _open(self, frame: Open) -> None:
        # Before anything is opened: what an execution opens must be gone when it closes. Taken once, since a
        # process that could not return to it serves no other execution.
        if self._baseline is None and self._is_reused:
            self._baseline = Baseline()
        self._execution = RunnerContext(frame, self._emit)
        if self._is_cancelled:  # CANCEL was read before this OPEN was handled
            self._execution.cancel()
        self._is_granted = bool(frame.resources)
        self._execution.handles.open_eager()
        self._stream.send(Ready())

    def _run(self, execution: RunnerContext, run: Run) -> StepResult:
        # A line begun between steps, perhaps by another execution's teardown, does not belong to this step.
        self._capture.finish()
        self._running, self._lines = run, 0
        try:
            result = self._attempt(execution, run)
        except BaseException as error:  # noqa: BLE001 - SystemExit, too, is a step's failure
            result = self._failure(error, run)
        self._capture.finish()
        self._running = None
        return replace(result, nonce=run.nonce, reused=self._deferred.take_reused(run.step))

    def _failure(self, error: BaseException, run: Run) -> StepResult:
        about = {"step": run.step, "node": run.uses}
        if self._limits is None:
            return StepResult.from_error(error, attempt=run.attempt, **about)
        return failure_within(self._limits, error, attempt=run.attempt, **about)

    def _attempt(self, execution: RunnerContext, run: Run) -> StepResult:
        node = self._registry.get(run.uses)
        if node is None:
            raise StepError(Code.SKILL_NOT_FOUND, f"this runtime has no node {run.uses}")
        return execution.attempt(node, run, self._emit)

    def _close(self, execution: RunnerContext) -> None:
        end_timers()  # an exception of their handlers would interrupt the teardown
        found = execution.close()
        if self._baseline is not None:
            found += self._baseline.restore()
        errors = tuple(storable(error, _ERROR_MAX) for error in found[:_ERRORS_MAX])
        self._execution = None
        del execution
        if self._is_granted and self._is_reused:
            self._collect()
        self._deferred.hold()
        self._is_open = False
        self._stream.send(Closed(errors=errors))

    def _collect(self) -> None:
        """Collect garbage: drivers leave cycles with secrets in them, which the next execution could find."""
        gc.collect()
        if len(sys.modules) != self._modules:
            # Imported modules stay, and are excluded from collections, of which they would take most of the time.
            self._modules = len(sys.modules)
            gc.freeze()

    def _read(self) -> None:
        try:
            while True:
                try:
                    frame = self._stream.receive(_DEFER_SECONDS if self._is_open else None)
                except TimeoutError:
                    self._deferred.flush()
                else:
                    self._accept(frame)
        except ProtocolError:
            os._exit(EXIT_PROTOCOL)
        finally:
            _end_group()

    def _accept(self, frame: Frame) -> None:
        match frame:
            case Cancel():
                # The worker sends it only between OPEN and CLOSE; later it means nothing.
                self._is_cancelled = True
                if self._execution is not None:
                    self._execution.cancel()
            case Keepalive():
                pass
            case _:
                if isinstance(frame, Open):
                    self._is_open, self._is_cancelled = True, False
                self._inbox.put(frame)

    def _emit(self, frame: Frame) -> None:
        # An opened handle must be known to the worker before it kills this process; reuse and disposal may wait.
        if isinstance(frame, Resource) and frame.event in DEFERRABLE:
            self._deferred.add(frame)
            return
        self._capture.catch_up()
        self._stream.send(frame)

    def _log(self, level: Level, message: str) -> None:
        run = self._running
        if run is not None and self._lines < LINES_MAX:
            self._lines += 1
            self._stream.send(Log(step=run.step, level=level, message=message, nonce=run.nonce))

    def _forked(self) -> None:
        # Two processes that write to one stream would interleave their frames.
        self._running = None
        self._capture.forked()
        self._stream.close()


def _end_group() -> NoReturn:
    # Processes that left the group are descendants only as long as this process lives; then,
    # as leader of its own group, the runner kills the rest with itself.
    try:
        kill_descendants()
    finally:
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)
