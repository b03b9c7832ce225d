"""The body of a link: the attempts of one step, or of all that are left on the express lane.

A fault of the platform fails the step, or the run would be tried again and again.

Timing: background-worker.
Model: sync, one pool thread.
Guarantee: one result and one checkpoint per attempt.
Failure: owns the retries: up to a minute it waits here, context open; longer waits park the run.
"""

import logging
import time
from dataclasses import replace
from datetime import datetime

from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from executions.explain.connections import describe_record
from executions.placement.run_scope import run_scope
from executions.semantics.attempt import Attempt, AttemptOutcome, Failure
from executions.semantics.decisions import NEVER_AGAIN, StepDecision
from executions.states import ExecutionState, StepState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import Claim, Refusal
from executions.transitions.refusal import note_refusal
from executions.transitions.set_outcome import set_outcome
from executions.worker.boot import WorkerBoot
from executions.worker.links.attempt_log import AttemptLog
from executions.worker.links.claiming import try_claim
from executions.worker.links.closing import end_overdue
from executions.worker.links.context import Exit, OpenContext
from executions.worker.links.interruption import InterruptReason, LinkInterrupted
from executions.worker.links.opening import open_context
from executions.worker.log_ids import log_ids
from isolane.protocol import Run
from isolane.results import Code, StepResult
from isolane.text import MESSAGE_MAX
from resources.runtimes.base import Runtime

LOOK_SECONDS = 0.2  # between two looks, while it waits, for a cancel, a loss or a drain
logger = logging.getLogger(__name__)


class StepFailed(Exception):
    """Carries a code and nothing else: what Flower shows must not leak a step's texts."""


class StepRunner:
    """Runs the step, or the steps, of one link."""

    def __init__(self, boot: WorkerBoot, context: OpenContext) -> None:
        self._boot = boot
        self._context = context

    def run(self, path: str, claim: Claim, error: Failure | None) -> str:
        """Run the step that was claimed; returns the path of the step that comes next in this context, if any."""
        while True:
            decided = self._run_step(path, claim, error)
            if self._context.exit is not None or not self._context.run.plan.express:
                return "" if self._context.exit else decided.next_step
            path, error = decided.next_step, None
            claim = self._context.take_claim() or self._claim(path)

    def _run_step(self, path: str, claim: Claim, error: Failure | None) -> StepDecision:
        """Run attempt after attempt, until the step has ended or the context has."""
        while True:
            deadline = claim.at + claim.left_s
            if claim.wait_s:
                self._wait(claim.wait_s, deadline)
                error = self._open_context(deadline)
            outcome = self._run_attempt(path, claim, error, deadline)
            self._checkpoint(outcome)
            if self._context.exit or outcome.decided.state is not StepState.RETRYING:
                return outcome.decided
            self._wait(outcome.decided.retry_s or 0.0, deadline)
            claim = self._claim(path)

    def _open_context(self, deadline: float) -> Failure | None:
        """Open the context after the wait for a retry: remote servers are asked then, and hold nothing until then."""
        try:
            return open_context(self._boot, self._context, deadline - time.monotonic())
        except DatabaseError:
            raise LinkInterrupted(InterruptReason.HANDED_BACK) from None

    def _claim(self, path: str) -> Claim:
        if not self._boot.may_claim():
            raise LinkInterrupted(InterruptReason.HANDED_BACK)
        with run_scope(self._context.placement.tenant_id):
            claimed = try_claim(self._context.placement, path, may_repeat=self._may_repeat)
        if isinstance(claimed, Refusal):
            # Cancelled, or over: the loop finds a placement without a link and ends it.
            raise LinkInterrupted(InterruptReason(claimed.value))
        return claimed

    # --- one attempt
    def _run_attempt(
        self, path: str, claim: Claim, error: Failure | None, deadline: float
    ) -> AttemptOutcome:
        context = self._context
        failure = Failure(code=claim.code, message=claim.message) if claim.recovering else None
        attempt = Attempt(
            context.run, path, number=claim.attempt, version=claim.version, recovers_from=failure
        )
        try:
            return self._perform(attempt, claim, error, deadline)
        except LinkInterrupted:
            raise
        except Exception:
            # A fault of the platform must fail the step.
            logger.exception(
                "step not run", extra={"event": "STEP_NOT_RUN", "step": path, **self._ids()}
            )
            message = "The worker could not run this step; its log says why."
            return attempt.finish(_failed(path, claim, Code.UNKNOWN_ERROR, message))

    def _perform(
        self, attempt: Attempt, claim: Claim, error: Failure | None, deadline: float
    ) -> AttemptOutcome:
        """Run an attempt unless its outcome is known without its node."""
        path, runtime = attempt.step.path, self._context.runtime
        if time.monotonic() >= deadline:
            return attempt.overdue()
        prepared = attempt.prepare()
        if prepared is None:
            return attempt.skipped()
        if isinstance(prepared, StepResult):
            return attempt.finish(prepared)
        if error or runtime is None:
            error = error or Failure(code=Code.RESOURCE_ERROR, message="no runtime")
            return attempt.finish(_failed(path, claim, Code(error.code), error.message))
        if self._context.next_step and not runtime.alive:
            # It died after an earlier step had ended. Not so in a new context, or this could go on for ever.
            self._context.advance(path, None)
            self._context.end(Exit.RESTART)
            raise LinkInterrupted(InterruptReason.RUNTIME_ENDED)
        return self._run_in(runtime, attempt, prepared, deadline)

    def _run_in(
        self, runtime: Runtime, attempt: Attempt, frame: Run, deadline: float
    ) -> AttemptOutcome:
        context, step = self._context, attempt.step
        if context.lost or not self._boot.lease_is_fresh():
            # Opening may have taken long: another worker may have the run by now.
            raise LinkInterrupted(InterruptReason.LEASE_NOT_FRESH)
        # The step is given the time that it really has.
        left_s = max(deadline - time.monotonic(), 0.001)
        frame = replace(frame, timeout_s=min(frame.timeout_s, left_s))
        attempt_log = AttemptLog(
            context.placement,
            step.path,
            frame.attempt,
            masker=context.run.memory.masker,
            withheld=bool(step.sensitive),
        )
        context.write_to(attempt_log)
        began = timezone.now()
        try:
            result = runtime.run(
                frame,
                deadline=time.monotonic() + frame.timeout_s,
                cancelled=context.cancelled,
                on_frame=attempt_log.output.add,
            )
            # Before the log is waited for: the time of the runtime's answer says whether the run's time was over.
            over = result.code is Code.TIMEOUT and time.monotonic() >= deadline
        finally:
            output = attempt_log.close()
        if result.code is not None and runtime.lost:
            context.lose()
            raise LinkInterrupted(InterruptReason.RUNTIME_LOST)
        if result.trace:
            trace = context.run.memory.masker.mask(result.trace)
            logger.error(
                "%s", trace, extra={"event": "STEP_TRACE", "step": step.path, **self._ids()}
            )
        return attempt.finish(self._with_gate(result, began), output, run_is_over=over)

    def _with_gate(self, result: StepResult, began: datetime) -> StepResult:
        """Add to a failure what the gate did during the step, unless its message may have said so."""
        if result.code is None:
            return result
        # Of an unexpected exception nothing but its class is shown.
        has_text = result.code is not Code.UNKNOWN_ERROR
        record = self._context.connections.fault_since(began, untold=has_text)
        if record is None:
            return result
        told = f"At the gate: {describe_record(record)}."
        message = result.message[: MESSAGE_MAX - len(told) - 2].rstrip(" .")
        return replace(result, message=". ".join(filter(None, (message, told))))

    # --- its checkpoint
    def _checkpoint(self, outcome: AttemptOutcome) -> None:
        """Write the outcome of an attempt and note what comes next; raises StepFailed if it fails the run."""
        context, decided = self._context, outcome.decided
        if context.lost:
            raise LinkInterrupted(InterruptReason.PLACEMENT_OVER)
        # Looked at once: a runtime that dies after the next step was claimed fails that step.
        exit_ = self._exit_after(decided)
        claim_next = exit_ is None and self._may_claim_next(decided)
        if exit_ is not None and context.runtime is not None:
            # Written or not, no step begins in this context any more.
            context.runtime.begin_close()
        tracked = context.tracker.unwritten()
        with run_scope(context.placement.tenant_id):
            try:
                written = write_checkpoint(
                    context.placement,
                    outcome.record,
                    decided,
                    claim_next_for=context.placement.worker if claim_next else "",
                    tracked=tracked,
                    may_repeat=self._may_repeat,
                )
            except (OperationalError, InterfaceError):
                context.lose()
                raise LinkInterrupted(InterruptReason.DATABASE_AWAY) from None
            if written is None:
                context.lose()
                note_refusal(context.placement, "checkpoint", outcome.record.path)
                raise LinkInterrupted(InterruptReason.FENCE_REFUSED)
        context.tracker.mark_written(tracked)
        if outcome.record.costs:
            context.run.budget.run_spent = dict(outcome.record.run_costs)
            context.run.budget.tenant_spent.update(written.monthly)
        # Without a claim if a cancel was requested: a claim of its own would be refused, too.
        context.advance(decided.next_step, written.claim)
        if exit_ is not None:
            context.end(exit_)
        if decided.outcome not in {None, ExecutionState.SUCCEEDED}:
            raise StepFailed(outcome.record.run_code)

    def _may_repeat(self) -> bool:
        return self._boot.may_repeat() and not self._context.lost

    def _may_claim_next(self, decided: StepDecision) -> bool:
        """Say whether the next step is claimed with the checkpoint: this link runs it, or the next one takes the claim.

        A step that may not run again is claimed only if this link runs it: a claim whose message is lost would end it.
        """
        plan = self._context.run.plan
        return (
            decided.state is not StepState.RETRYING
            and (plan.express or plan.step(decided.next_step).guarantee not in NEVER_AGAIN)
            and self._boot.may_claim()
        )

    def _exit_after(self, decided: StepDecision) -> Exit | None:
        if decided.outcome is not None:
            return Exit.ENDED
        if decided.wake_s:
            return Exit.PARKED
        runtime = self._context.runtime
        return None if runtime is not None and runtime.alive else Exit.RESTART

    # --- waiting within the link, context open
    def _wait(self, seconds: float, deadline: float) -> None:
        """Wait for a retry's time; ends the run if it is cancelled or overdue meanwhile."""
        until = time.monotonic() + seconds
        while (left := min(until, deadline) - time.monotonic()) > 0:
            if self._context.cancelled.wait(min(left, LOOK_SECONDS)):
                self._end_run(ExecutionState.CANCELLED)
            if self._context.lost or self._boot.draining.is_set():
                raise LinkInterrupted(InterruptReason.HANDED_BACK)
        if time.monotonic() >= deadline:
            self._end_run(ExecutionState.TIMED_OUT)

    def _end_run(self, outcome: ExecutionState) -> None:
        placement = self._context.placement
        with run_scope(placement.tenant_id):
            if outcome is ExecutionState.CANCELLED:
                written = set_outcome(
                    placement, outcome, code=Code.CANCELLED, message="Cancelled while it waited."
                )
            else:
                written = end_overdue(placement)
            if not written:
                self._context.lose()
                note_refusal(placement, "checkpoint")
                raise LinkInterrupted(InterruptReason.FENCE_REFUSED)
        self._context.end(Exit.ENDED)
        raise StepFailed(
            Code.CANCELLED.value if outcome is ExecutionState.CANCELLED else Code.TIMEOUT.value
        )

    def _ids(self) -> dict[str, object]:
        return log_ids(self._context.placement)


def _failed(path: str, claim: Claim, code: Code, message: str) -> StepResult:
    return StepResult.failed(step=path, attempt=claim.attempt, code=code, message=message)
