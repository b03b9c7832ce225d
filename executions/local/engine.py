"""The engine of `isolane run --local`: runs a blueprint's steps in order, in a runtime on this machine.

Timing: background-worker, in the terminal; backoffs and pauses take real time.
Model: sync; setting `cancelled`, from a signal handler or another thread, ends the run.
Guarantee: stores nothing; attempts and decisions are those of a worker, so a blueprint means the same here.
Failure: owns the retries; every failure of a step is its result.
"""

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from executions.blueprints.plan import PlannedStep, plan
from executions.blueprints.schema.inputs import check_inputs
from executions.local.listener import Clock, RunListener
from executions.local.run import LocalRun, LocalStep
from executions.semantics.active_run import ActiveRun
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt import Attempt, AttemptOutcome, Failure
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.budgets import Budget
from executions.semantics.decisions import StepDecision
from executions.semantics.masking import masked_inputs
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.semantics.resource_tracker import ResourceTracker
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState, StepState
from isolane.limits import RunLimits
from isolane.protocol import Cost, Grant, Log, Progress, Resource, Run
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.base import (
    UNLIMITED,
    RunIdentity,
    Runtime,
    RuntimeBackend,
    RuntimeStartError,
)

TENANT = "local"  # the tenant and the user that steps see
NO_BOOT = UUID(int=0)  # there is no worker, nor a lane
CLOSE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _NextAttempt:
    """The next attempt."""

    path: str
    number: int = 1
    failure: Failure | None = None


class LocalEngine:
    """Run one blueprint once."""

    def __init__(
        self,
        document: Mapping[str, Any],
        inputs: Mapping[str, Any],
        *,
        backend: RuntimeBackend,
        listener: RunListener,
        limits: RunLimits = UNLIMITED,
        grants: Sequence[Grant] = (),
        seed: int | None = None,
        cancelled: threading.Event | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_inputs(document, dict(inputs))
        self._plan = planned = plan(document)
        self._backend = backend
        self._listener = listener
        self._cancelled = cancelled or threading.Event()
        self._clock = clock or Clock()
        self._deadline = 0.0
        self._runtime: Runtime | None = None
        self._grants = grants
        self._tracker = ResourceTracker(now=lambda: datetime.now(UTC))
        self._tracker.set_grants(grants, steps=[step.path for step in planned.steps])
        self._epoch = 0
        self._request_id = uuid4().hex  # like that of a request without one
        metadata = Metadata(
            tenant_id=0, execution_id=uuid4(), blueprint=planned.name, blueprint_version=0
        )
        self._active = ActiveRun(
            plan=planned,
            memory=ExecutionMemory(
                planned, metadata=metadata, inputs=inputs, outputs={}, variables={}
            ),
            budget=Budget(run_limits=planned.budget),
            seed=secrets.randbits(SEED_BITS) if seed is None else seed,
            isolation=backend.level,
            limits=limits.stricter(planned.limits),
            seal=lambda _value: b"",  # nothing is stored
        )
        self._active.memory.masker.learn_secrets(
            secret for grant in grants for secret in grant.secrets.values()
        )
        self._run = LocalRun(
            seed=self._active.seed,
            inputs=masked_inputs(inputs, planned.sensitive_inputs),
            steps=[
                LocalStep(path=step.path, position=step.position, uses=step.uses)
                for step in planned.steps
            ],
        )

    def run(self) -> LocalRun:
        """Run the blueprint to its end."""
        self._deadline = self._clock.now() + self._plan.timeout_s
        at: _NextAttempt | None = _NextAttempt(path=self._plan.steps[0].path)
        try:
            while at is not None:
                at = self._advance(at)
        finally:
            self._close()
        self._settle()
        self._run.resources = list(self._tracker.unwritten())
        return self._run

    def _advance(self, at: _NextAttempt) -> _NextAttempt | None:
        """Make one attempt; return the next one, if any."""
        if self._ended_by_cancel():
            return None
        outcome = self._attempt(at)
        if outcome.decided.state is StepState.SUSPENDED:
            reply = self._ask(at, outcome)
            if self._ended_by_cancel():
                return None
            outcome = self._answer(at, outcome, reply)
        decided, record = outcome.decided, outcome.record
        if decided.outcome is not None:
            self._end(decided.outcome, record.run_code, record.run_message)
            return None
        self._wait(decided)
        if decided.state is StepState.RETRYING:
            failure = Failure(code=record.code, message=record.message)
            recovers_from = failure if decided.recovering else None
            return _NextAttempt(path=at.path, number=at.number + 1, failure=recovers_from)
        if decided.next_step:
            return _NextAttempt(path=decided.next_step)
        if not self._ended_by_cancel():
            self._end(ExecutionState.SUCCEEDED)
        return None

    def _ended_by_cancel(self) -> bool:
        if self._cancelled.is_set():
            self._end(ExecutionState.CANCELLED, Code.CANCELLED.value, "Cancelled.")
        return self._cancelled.is_set()

    # --- one attempt
    def _attempt(self, at: _NextAttempt) -> AttemptOutcome:
        attempt = Attempt(self._active, at.path, number=at.number, recovers_from=at.failure)
        began = self._clock.now()
        outcome = self._run_attempt(attempt, at)
        self._update(outcome, self._clock.now() - began)
        return outcome

    def _run_attempt(self, attempt: Attempt, at: _NextAttempt) -> AttemptOutcome:
        if self._clock.now() >= self._deadline:
            return attempt.overdue()
        prepared = attempt.prepare()
        if prepared is None:
            return attempt.skipped()
        if isinstance(prepared, StepResult):
            return attempt.finish(prepared)
        try:
            runtime = self._open()
        except RuntimeStartError as error:
            return attempt.finish(_failed(at, Code.RESOURCE_ERROR, str(error)))
        return self._run_step(attempt, prepared, runtime)

    def _run_step(self, attempt: Attempt, frame: Run, runtime: Runtime) -> AttemptOutcome:
        step, output = attempt.step, AttemptOutput(now=lambda: datetime.now(UTC))
        result = runtime.run(
            frame,
            deadline=min(self._clock.now() + step.timeout_s, self._deadline),
            cancelled=self._cancelled,
            on_frame=lambda received: self._receive(received, step, output),
        )
        over = result.code is Code.TIMEOUT and self._clock.now() >= self._deadline
        outcome = attempt.finish(result, output, run_is_over=over)
        for line in outcome.record.lines:
            self._listener.log_line(step.path, line.level, line.message)
        if result.trace:
            self._listener.error(step.path, self._masked(result.trace))
        return outcome

    def _ask(self, at: _NextAttempt, asked: AttemptOutcome) -> ApprovalReply | None:
        """Ask a person; meanwhile the context is closed and the run's timeout is suspended."""
        self._close()
        began = self._clock.now()
        reply = self._listener.ask(at.path, asked.record.question, asked.decided.pause_s)
        self._deadline += self._clock.now() - began
        return reply

    def _answer(
        self, at: _NextAttempt, asked: AttemptOutcome, reply: ApprovalReply | None
    ) -> AttemptOutcome:
        attempt = Attempt(self._active, at.path, number=at.number, recovers_from=at.failure)
        outcome = attempt.answered(reply, "Nobody answered.")
        self._update(outcome, 0.0, inputs=asked.record.inputs)
        return outcome

    def _receive(
        self, frame: Log | Progress | Cost, step: PlannedStep, output: AttemptOutput
    ) -> None:
        output.add(frame)
        if step.sensitive:
            return  # its sensitive values are known only at its end: keep the lines until then
        masker = self._active.memory.masker
        for line in output.take_lines():
            self._listener.log_line(step.path, line.level, line.masked_by(masker).message)
        if isinstance(frame, Progress):
            self._listener.progress(step.path, frame.fraction, self._masked(frame.message))

    def _update(
        self, outcome: AttemptOutcome, seconds: float, *, inputs: str | None = None
    ) -> None:
        run, record, memory = self._run, outcome.record, self._active.memory
        step = run.steps[self._plan.step(record.path).position]
        step.state, step.attempt = outcome.decided.state, record.attempt
        step.inputs, step.output = _value(inputs or record.inputs), _value(record.output)
        step.code, step.message, step.cause = record.code, record.message, record.cause
        step.seconds += seconds
        if record.costs:
            run.costs = self._active.budget.run_spent = dict(record.run_costs)
        if record.outputs is not None:
            run.outputs = _value(record.outputs)
        run.variables = memory.shown_variables()
        self._listener.attempt_finished(step)

    # --- between attempts
    def _wait(self, decided: StepDecision) -> None:
        """Wait with the context open if it is short; else close it and suspend the run's timeout."""
        if parked := decided.wake_s:
            self._close()
            began = self._clock.now()
            self._sleep(parked)
            self._deadline += self._clock.now() - began
        elif decided.retry_s:
            self._sleep(min(decided.retry_s, self._deadline - self._clock.now()))

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._listener.waiting(seconds)
            self._clock.wait(seconds, self._cancelled)

    def _end(self, outcome: ExecutionState, code: str = "", message: str = "") -> None:
        self._run.state, self._run.code, self._run.message = outcome, code, message

    def _settle(self) -> None:
        """Give unfinished steps their final states, as when a worker closes a run."""
        cancelled = self._run.state is ExecutionState.CANCELLED
        for step in self._run.steps:
            if step.state is StepState.PENDING:
                step.state = StepState.CANCELLED if cancelled else StepState.SKIPPED
            elif step.state in {StepState.RETRYING, StepState.SUSPENDED}:
                step.state = StepState.CANCELLED if cancelled else StepState.FAILED

    # --- the context
    def _open(self) -> Runtime:
        if self._runtime is not None and self._runtime.alive:
            return self._runtime
        self._close()
        self._epoch += 1
        metadata = self._active.memory.metadata
        placement = Placement(
            tenant_id=metadata.tenant_id,
            execution_id=metadata.execution_id,
            epoch=self._epoch,
            boot=NO_BOOT,
            worker=TENANT,
            lane="",
        )
        self._runtime = self._backend.start(
            placement,
            identity=RunIdentity(tenant=TENANT, user_id=TENANT, request_id=self._request_id),
            limits=self._active.limits,
            grants=self._grants,
            on_resource=self._track_resource,
        )
        self._runtime.open()
        return self._runtime

    def _close(self) -> None:
        if self._runtime is not None:
            for error in self._runtime.close(CLOSE_SECONDS):
                self._listener.log_line(
                    "", "warning", self._masked(f"closing the context: {error}")
                )
            self._runtime = None
            self._tracker.end_killed()

    def _track_resource(self, frame: Resource) -> None:
        self._tracker.report(replace(frame, error=self._masked(frame.error)))

    def _masked(self, text: str) -> str:
        return self._active.memory.masker.mask(text)


def _failed(at: _NextAttempt, code: Code, message: str) -> StepResult:
    return StepResult.failed(step=at.path, attempt=at.number, code=code, message=message)


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
