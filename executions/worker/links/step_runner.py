"""The body of a link: the attempts of one step, or of all that are left on the express lane.

Timing: background-worker. Model: sync, one pool thread. Guarantee: one result and one checkpoint per attempt.
Failure: owns the retries: up to a minute it waits here, context open; longer waits park the run. What the platform gets
wrong fails the step, or the run would be tried again and again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from celery.exceptions import Ignore
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError

from executions.placement.run_scope import run_scope
from executions.semantics.attempt import Attempt, AttemptOutcome, Failure
from executions.semantics.decisions import NEVER_AGAIN, Checkpoint
from executions.states import ExecutionState, StepState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.close import set_outcome
from executions.transitions.refusal import note_refusal
from executions.worker.boot import WorkerBoot
from executions.worker.links.attempt_log import AttemptLog
from executions.worker.links.closing import end_overdue
from executions.worker.links.context import Exit, OpenContext
from executions.worker.log_ids import log_ids
from isolane.protocol import Run
from isolane.results import Code, StepResult

# Opens the context, with the seconds that its run has left; returns what went wrong.
OpenFunction = Callable[[OpenContext, float], Failure | None]
SLICE_SECONDS = 0.2  # between two looks, while waiting, at whether to go on waiting
logger = logging.getLogger(__name__)


class StepFailed(Exception):
    """Carries a code and nothing else: what Flower shows must not leak what a step said."""


class StepRunner:
    """Works for one link."""

    def __init__(
        self, machine: WorkerBoot, context: OpenContext, *, open_context: OpenFunction
    ) -> None:
        self._machine = machine
        self._context = context
        self._open_context = open_context

    def run(self, path: str, claim: Claim, error: Failure | None) -> str:
        """Run the step that was claimed; returns the path of the step that comes next in this context, if any."""
        while True:
            decided = self._step(path, claim, error)
            if self._context.exit is not None or not self._context.run.plan.express:
                return "" if self._context.exit else decided.next_step
            path, error = decided.next_step, None
            claim, self._context.ahead = self._context.ahead or self._claim(path), None

    def _step(self, path: str, claim: Claim, error: Failure | None) -> Checkpoint:
        """Attempt after attempt, until the step has ended or the context has."""
        while True:
            deadline = claim.at + claim.left_s
            if claim.wait_s:
                self._wait(claim.wait_s, deadline)
                error = self._open(deadline)
            concluded = self._attempt(path, claim, error, deadline)
            self._write(concluded)
            if self._context.exit or concluded.decided.state is not StepState.RETRYING:
                return concluded.decided
            self._wait(concluded.decided.retry_s or 0.0, deadline)
            claim = self._claim(path)

    def _open(self, deadline: float) -> Failure | None:
        """After the wait: a far side is asked when the retry's time has come, and nothing is held until then."""
        try:
            return self._open_context(self._context, deadline - time.monotonic())
        except DatabaseError:
            raise Ignore("the loop hands the placement back") from None

    def _claim(self, path: str) -> Claim:
        if self._machine.draining.is_set() or not self._machine.lease_is_fresh():
            raise Ignore("the loop hands the placement back")
        with run_scope(self._context.placement.tenant_id):
            claimed = claim_step(
                self._context.placement,
                path,
                worker=self._machine.node_name,
                may_repeat=self._may_repeat,
            )
            if claimed is Refusal.STALE:
                note_refusal(self._context.placement, "claim", path)
        if isinstance(claimed, Refusal):
            # Cancelled, or over: the loop finds a placement without a link and ends it.
            raise Ignore(claimed.value)
        return claimed

    # --- one attempt
    def _attempt(
        self, path: str, claim: Claim, error: Failure | None, deadline: float
    ) -> AttemptOutcome:
        context = self._context
        failure = Failure(code=claim.code, message=claim.message) if claim.recovering else None
        attempt = Attempt(
            context.run, path, number=claim.attempt, version=claim.version, recovers_from=failure
        )
        try:
            return self._concluded(attempt, claim, error, deadline)
        except Ignore:
            raise
        except Exception:
            # A fault of ours must fail the step.
            logger.exception(
                "step not run", extra={"event": "STEP_NOT_RUN", "step": path, **self._ids()}
            )
            return attempt.concluded(
                StepResult.failed(
                    step=path,
                    attempt=claim.attempt,
                    code=Code.UNKNOWN_ERROR,
                    message="The worker could not run this step; its log says why.",
                )
            )

    def _concluded(
        self, attempt: Attempt, claim: Claim, error: Failure | None, deadline: float
    ) -> AttemptOutcome:
        path = attempt.step.path
        if time.monotonic() >= deadline:
            return attempt.overdue()
        prepared = attempt.prepare()
        if prepared is None:
            return attempt.skipped()
        if isinstance(prepared, StepResult):
            return attempt.concluded(prepared)
        if error or self._context.runtime is None:
            error = error or Failure(code=Code.RESOURCE_ERROR, message="no runtime")
            return attempt.concluded(_failed(path, claim, Code(error.code), error.message))
        if self._context.next_step and not self._context.runtime.alive:
            # It died after an earlier step had ended. Not so in a new context, or this could go on for ever.
            self._context.exit, self._context.next_step = Exit.RESTART, path
            raise Ignore("its runtime ended before the step began")
        return self._ran(attempt, prepared, deadline)

    def _ran(self, attempt: Attempt, frame: Run, deadline: float) -> AttemptOutcome:
        context, step = self._context, attempt.step
        if context.lost or not self._machine.lease_is_fresh():
            # Opening may have taken long: others may have the run by now.
            raise Ignore("the placement may be over")
        # The step is told the time that it really has.
        left_s = max(deadline - time.monotonic(), 0.001)
        frame = replace(frame, timeout_s=min(frame.timeout_s, left_s))
        assert context.runtime is not None  # noqa: S101 - seen by the caller
        context.journal = journal = AttemptLog(
            context.placement,
            step.path,
            frame.attempt,
            masker=context.run.memory.masker,
            held=bool(step.sensitive),
        )
        try:
            result = context.runtime.run(
                frame,
                deadline=time.monotonic() + frame.timeout_s,
                cancelled=context.cancelled,
                on_frame=journal.said.hear,
            )
            # Before the journal is waited for: whose time was over is decided by when the runtime answered.
            over = result.code is Code.TIMEOUT and time.monotonic() >= deadline
        finally:
            said = journal.close()
        if result.code is not None and context.runtime.lost:
            context.lost = True
            raise Ignore("its runtime was ended because the lease was not renewed in time")
        if result.trace:
            trace = context.run.memory.masker.mask(result.trace)
            logger.error(
                "%s", trace, extra={"event": "STEP_TRACE", "step": step.path, **self._ids()}
            )
        return attempt.concluded(result, said, run_is_over=over)

    # --- what it comes to
    def _write(self, concluded: AttemptOutcome) -> None:
        context, decided = self._context, concluded.decided
        if context.lost:
            raise Ignore("the placement is over")
        # Looked at once: a runtime that dies after the next step was claimed fails that step.
        comes_after = self._exit(decided)
        claim_next = comes_after is None and self._goes_on(decided)
        if comes_after is not None and context.runtime is not None:
            # Whatever the checkpoint comes to, no step begins in this context any more.
            context.runtime.begin_close()
        tracked = context.tracker.unwritten()
        with run_scope(context.placement.tenant_id):
            try:
                written = write_checkpoint(
                    context.placement,
                    concluded.record,
                    decided,
                    claim_next_for=self._machine.node_name if claim_next else "",
                    tracked=tracked,
                    may_repeat=self._may_repeat,
                )
            except (OperationalError, InterfaceError):
                context.lost = True
                raise Ignore("the database was away for too long: others go on") from None
            if written is None:
                context.lost = True
                note_refusal(context.placement, "checkpoint", concluded.record.path)
                raise Ignore("refused by the fence")
        context.tracker.mark_written(tracked)
        if concluded.record.costs:
            context.run.budget.run_spent = dict(concluded.record.run_costs)
            context.run.budget.tenant_spent.update(written.monthly)
        # None if a cancel was asked for: the claim of its own is refused, too.
        context.next_step, context.ahead = decided.next_step, written.claim
        context.exit = comes_after
        if decided.outcome not in {None, ExecutionState.SUCCEEDED}:
            raise StepFailed(concluded.record.run_code)

    def _may_repeat(self) -> bool:
        return self._machine.may_repeat() and not self._context.lost

    def _goes_on(self, decided: Checkpoint) -> bool:
        """Whether the next step is claimed with the checkpoint: the express link runs it, else the next link takes it.

        Not what may not run again, unless it is this link that runs it: a claim whose message is lost would end it.
        """
        plan = self._context.run.plan
        return (
            decided.state is not StepState.RETRYING
            and (plan.express or plan.step(decided.next_step).guarantee not in NEVER_AGAIN)
            and not self._machine.draining.is_set()
            and self._machine.lease_is_fresh()
        )

    def _exit(self, decided: Checkpoint) -> Exit | None:
        if decided.outcome is not None:
            return Exit.ENDED
        if decided.wake_s:
            return Exit.PARKED
        runtime = self._context.runtime
        return None if runtime is not None and runtime.alive else Exit.RESTART

    # --- waiting within the link, context open
    def _wait(self, seconds: float, deadline: float) -> None:
        """Wait for a retry's time; whatever ends the run meanwhile is acted upon."""
        until = time.monotonic() + seconds
        while (left := min(until, deadline) - time.monotonic()) > 0:
            if self._context.cancelled.wait(min(left, SLICE_SECONDS)):
                self._end(ExecutionState.CANCELLED)
            if self._context.lost or self._machine.draining.is_set():
                raise Ignore("the loop hands the placement back")
        if time.monotonic() >= deadline:
            self._end(ExecutionState.TIMED_OUT)

    def _end(self, outcome: ExecutionState) -> None:
        placement = self._context.placement
        with run_scope(placement.tenant_id):
            if outcome is ExecutionState.CANCELLED:
                written = set_outcome(
                    placement, outcome, code=Code.CANCELLED, message="Cancelled while it waited."
                )
            else:
                written = end_overdue(placement)
            if not written:
                self._context.lost = True
                note_refusal(placement, "checkpoint")
                raise Ignore("refused by the fence")
        self._context.exit = Exit.ENDED
        raise StepFailed(
            Code.CANCELLED.value if outcome is ExecutionState.CANCELLED else Code.TIMEOUT.value
        )

    def _ids(self) -> dict[str, object]:
        return log_ids(self._context.placement)


def _failed(path: str, claim: Claim, code: Code, message: str) -> StepResult:
    return StepResult.failed(step=path, attempt=claim.attempt, code=code, message=message)
