"""The supervision of one step in an untrusted child.

Timing: returns shortly after the deadline at the latest; a cancellation is noticed within 0.1 s.
Model: one thread per step polls the stream, the clock, the cancel flag and the process.
Guarantee: exactly one result and bounded output; a runtime that did not answer properly is dead by then.
Failure: an error of the caller's own callback kills the runtime and is raised.
"""

import secrets
import threading
import time
from dataclasses import replace

from isolane.protocol import (
    COSTS_MAX,
    Cancel,
    Cost,
    Frame,
    Log,
    Progress,
    ProtocolError,
    Ready,
    Resource,
    Run,
)
from isolane.results import Code, StepResult
from isolane.stream import StreamClosedError
from resources.runtimes.base import OnFrame, OnResource, ignore
from resources.runtimes.runner import Runner

_SLICE = 0.1  # seconds between two checks of everything but the stream
_GRACE = 1.0  # seconds that a cancelled step has to end by itself
_OPEN_TIMEOUT = 30.0  # seconds for a context whose OPEN was posted; its step has not begun
# Frames of one attempt that are read as fast as they come; after that one in a millisecond.
_QUICK_FRAMES = 5000
_PAUSE = 0.001
LOG_LINES = 1000  # of one attempt of a step
OUTPUT_KB = 256  # of all these lines, unless a run has a limit of its own
DROPPED = "further output of this step is dropped"
# Only the platform may report these; CANCELLED, too, unless a cancellation was requested.
_RESERVED = frozenset({Code.WORKER_LOST, Code.OUTCOME_UNKNOWN, Code.CATALOGUE_MISSING})


class LogBudget:
    """The log lines that one attempt may still write; counted here, as the child is not trusted."""

    def __init__(self, output_kb: int | None = None) -> None:
        self._lines = LOG_LINES
        self._bytes = 1024 * (OUTPUT_KB if output_kb is None else output_kb)

    def admit(self, log: Log) -> Log | None:
        """Return the line, the notice that further lines are dropped, or None."""
        if self._lines < 0:
            return None
        self._lines -= 1
        self._bytes -= len(log.message.encode())
        if self._lines >= 0 and self._bytes >= 0:
            return log
        self._lines = -1
        return Log(step=log.step, level="warning", message=DROPPED)


class Supervision:
    """One RUN from sending it to its result."""

    def __init__(
        self,
        child: Runner,
        run: Run,
        *,
        deadline: float,
        cancelled: threading.Event,
        on_frame: OnFrame,
        on_resource: OnResource = ignore,
        output_kb: int | None = None,
    ) -> None:
        self._child = child
        # Only this attempt knows it: a thread that an earlier one left cannot send frames for this one.
        self._run = replace(run, nonce=secrets.token_hex(8))
        self._limit = deadline
        self._cancelled = cancelled
        self._on_frame = on_frame
        self._on_resource = on_resource
        self._cancelling = False
        self._has_ended = False  # as of the last timeout
        self._budget = LogBudget(output_kb)
        self._costs = 0
        self._frames = 0

    def result(self) -> StepResult:
        """Run the step and return how it ended."""
        if self._cancelled.is_set():
            return self._failed(Code.CANCELLED, "cancelled before it began")
        try:
            return self._watch() if (refusal := self._send()) is None else refusal
        except BaseException:
            self._child.kill()
            raise

    def _watch(self) -> StepResult:
        opening = time.monotonic() + _OPEN_TIMEOUT
        while True:
            if self._cancelled.is_set() and not self._cancelling:
                self._cancel()
            if time.monotonic() >= (
                min(self._limit, opening) if self._child.is_pending else self._limit
            ):
                return self._overdue()
            outcome = self._next()
            if isinstance(outcome, StepResult):
                return outcome
            if outcome is not None:
                self._on_frame(outcome)

    def _send(self) -> StepResult | None:
        try:
            self._child.stream.send(self._run, max(self._limit - time.monotonic(), 0))
        except ProtocolError as error:  # nothing was sent
            return self._failed(Code.POLICY_VIOLATION, f"the parameters cannot be sent: {error}")
        except TimeoutError:
            return self._overdue()
        except StreamClosedError:
            return self._died()
        return None

    def _cancel(self) -> None:
        self._cancelling = True
        self._limit = min(self._limit, time.monotonic() + _GRACE)
        try:
            self._child.stream.send(Cancel(), _SLICE)
        except (TimeoutError, StreamClosedError):
            self._limit = 0.0

    def _next(self) -> StepResult | Log | Progress | Cost | None:
        try:
            frame = self._child.stream.receive(_SLICE)
            self._slow_down()
            return self._accept(frame)
        except TimeoutError:
            # A process that it left may keep the stream open for ever.
            if self._has_ended:
                return self._died()
            self._has_ended = self._child.ended()  # frames that it sent before are still read
            return None
        except StreamClosedError:
            return self._died()
        except ProtocolError as error:
            return self._end(Code.POLICY_VIOLATION, f"the runtime broke the protocol: {error}")

    def _slow_down(self) -> None:
        """Let a step that says very much wait: reading is the worker's processor time, not the run's."""
        self._frames += 1
        if self._frames > _QUICK_FRAMES:
            self._cancelled.wait(_PAUSE)

    def _accept(self, frame: Frame) -> StepResult | Log | Progress | Cost | None:
        match frame:
            case Resource():
                # Opened now or in an earlier step: it is this run's.
                self._on_resource(frame)
                return None
            case Log() | Progress() | Cost():
                # A thread that an earlier step left may still send: not for this step.
                ours = (frame.step, frame.nonce) == (self._run.step, self._run.nonce)
                return self._admit(frame) if ours else None
            case Ready():
                self._child.answered(frame)  # the OPEN that was sent before this RUN
                return None
            case StepResult() if not self._child.is_pending:
                run = self._run
                if (frame.step, frame.attempt, frame.nonce) != (run.step, run.attempt, run.nonce):
                    raise ProtocolError("StepResult: for another step or attempt")
                for resource_id, name in frame.reused.items():
                    self._on_resource(_reused(name, resource_id, run.step))
                return self._checked(frame)
        raise ProtocolError(f"{type(frame).__name__}: not expected during a step")

    def _checked(self, result: StepResult) -> StepResult:
        """Return the result, without codes that a node may not set."""
        if result.code is None:
            return result
        if self._cancelling:
            return self._failed(Code.CANCELLED, "cancelled")
        requested = self._cancelled.is_set()
        if result.code in _RESERVED or (result.code is Code.CANCELLED and not requested):
            reason = f"the node failed with {result.code}, which only the platform may report"
            return self._failed(Code.UNKNOWN_ERROR, f"{reason}: {result.message}")
        return result

    def _admit(self, frame: Log | Progress | Cost) -> Log | Progress | Cost | None:
        if isinstance(frame, Log):
            return self._budget.admit(frame)
        if isinstance(frame, Cost):
            self._costs += 1
            if self._costs > COSTS_MAX:  # costs are billed: none may be dropped
                raise ProtocolError(f"Cost: more than {COSTS_MAX} reports of one attempt")
        return frame

    def _overdue(self) -> StepResult:
        if self._cancelling:
            return self._end(Code.CANCELLED, "cancelled")
        if self._child.is_pending:
            return self._end(Code.RESOURCE_ERROR, "the runtime did not open its context in time")
        return self._end(Code.TIMEOUT, "the step was ended at its deadline")

    def _died(self) -> StepResult:
        self._child.wait_for_report()
        self._child.kill()
        if self._cancelling:
            return self._failed(Code.CANCELLED, "cancelled")
        code, message = self._child.cause_of_death()
        if self._child.is_pending and code is Code.UNKNOWN_ERROR:
            how = self._child.exit_text()
            message = f"the runtime died before its context was open ({how})"
            return self._failed(Code.RESOURCE_ERROR, message)
        return self._failed(code, message)

    def _end(self, code: Code, message: str) -> StepResult:
        self._child.kill()
        return self._failed(code, message)

    def _failed(self, code: Code, message: str) -> StepResult:
        step, attempt = self._run.step, self._run.attempt
        return StepResult.failed(step=step, attempt=attempt, code=code, message=message)


def _reused(name: str, resource_id: str, step: str) -> Resource:
    try:
        return Resource(event="reused", name=name, resource_id=resource_id, step=step)
    except ValueError as error:
        raise ProtocolError(f"StepResult.reused: {error}") from None
