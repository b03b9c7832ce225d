"""A run without a platform: a blueprint's steps, one after the other, in a runtime of this machine.

Timing: background-worker, in the terminal; backoffs and pauses are really waited for. Model: sync; whoever sets
`cancelled`, from a signal or another thread, ends it. Guarantee: nothing is stored; attempts and decisions are those of
a worker, so that a blueprint means the same here. Failure: owns the retries; every failure of a step is its result.
"""

import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol
from uuid import uuid4

from executions.blueprints.plan import PlannedStep, plan
from executions.blueprints.schema.inputs import check_inputs
from executions.semantics.active_run import ActiveRun
from executions.semantics.approval_reply import ApprovalReply
from executions.semantics.attempt import Attempt, AttemptOutcome, Failure
from executions.semantics.attempt_output import AttemptOutput
from executions.semantics.budgets import Budget
from executions.semantics.decisions import Checkpoint
from executions.semantics.masking import masked_inputs
from executions.semantics.memory import ExecutionMemory, Metadata
from executions.semantics.resource_tracker import ResourceTracker, TrackedResource
from executions.semantics.seeds import SEED_BITS
from executions.states import ExecutionState, StepState
from isolane.protocol import Cost, Grant, Log, Progress, Resource, Run
from isolane.results import Code, StepResult
from resources.runtimes.base import Placement, Runtime, RuntimeBackend, RuntimeStartError

TENANT = "local"  # the name that steps see; nobody else submits here, so the user's, too
CLOSE_SECONDS = 30.0


@dataclass(kw_only=True, slots=True)
class LocalStep:
    """One step, as far as it has come; what is sensitive is masked."""

    path: str
    position: int
    uses: str
    state: StepState = StepState.PENDING
    attempt: int = 0
    inputs: Any = None
    output: Any = None
    code: str = ""
    message: str = ""
    cause: str = ""
    seconds: float = 0.0  # that its attempts took


@dataclass(kw_only=True, slots=True)
class LocalRun:
    """The run, as far as it has come; what is sensitive is masked."""

    seed: int
    state: ExecutionState = ExecutionState.RUNNING
    code: str = ""
    message: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: Any = None
    variables: dict[str, Any] = field(default_factory=dict)
    costs: dict[str, Decimal] = field(default_factory=dict)
    steps: list[LocalStep] = field(default_factory=list)
    resources: list[TrackedResource] = field(
        default_factory=list
    )  # every handle, from first to last


class RunListener(Protocol):
    """Hears what happens, when it happens."""

    def said(self, step: str, level: str, message: str) -> None:
        """A step said a line."""

    def progressed(self, step: str, fraction: float, message: str) -> None:
        """A step told how far it is."""

    def raised(self, step: str, trace: str) -> None:
        """A node raised what it did not declare."""

    def attempted(self, step: LocalStep) -> None:
        """An attempt of a step has ended."""

    def waits(self, seconds: float) -> None:
        """The run waits before it goes on."""

    def asks(self, step: str, question: str, expires_s: float) -> ApprovalReply | None:
        """A person is asked; none if nobody answers in time."""


class Clock:
    """Time as it passes; tests bring their own."""

    def now(self) -> float:
        """Seconds, from some moment on."""
        return time.monotonic()

    def wait(self, seconds: float, cancelled: threading.Event) -> None:
        """Let so much time pass, or less if the run is cancelled."""
        cancelled.wait(seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class _At:
    """The attempt that comes next."""

    path: str
    number: int = 1
    failure: Failure | None = None


class LocalEngine:
    """Runs one blueprint once."""

    def __init__(
        self,
        document: Mapping[str, Any],
        inputs: Mapping[str, Any],
        *,
        backend: RuntimeBackend,
        watcher: RunListener,
        grants: Sequence[Grant] = (),
        seed: int | None = None,
        cancelled: threading.Event | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_inputs(document, dict(inputs))
        self._plan = planned = plan(document)
        self._backend = backend
        self._watcher = watcher
        self._cancelled = cancelled or threading.Event()
        self._clock = clock or Clock()
        self._deadline = 0.0
        self._runtime: Runtime | None = None
        self._grants = grants
        self._tracker = ResourceTracker(now=lambda: datetime.now(UTC))
        self._tracker.set_grants(grants, steps=[step.path for step in planned.steps])
        self._epoch = 0
        self._request_id = uuid4().hex  # as that of a request which brought none
        metadata = Metadata(
            tenant_id=0, execution_id=uuid4(), blueprint=planned.name, blueprint_version=0
        )
        self._resumable = ActiveRun(
            plan=planned,
            memory=ExecutionMemory(
                planned, metadata=metadata, inputs=inputs, outputs={}, variables={}
            ),
            budget=Budget(run_limits=planned.budget),
            seed=secrets.randbits(SEED_BITS) if seed is None else seed,
            isolation=backend.level,
            seal=lambda _value: b"",  # nothing is stored
        )
        self._resumable.memory.masker.learn_secrets(
            secret for grant in grants for secret in grant.secrets.values()
        )
        self._run = LocalRun(
            seed=self._resumable.seed,
            inputs=masked_inputs(inputs, planned.sensitive_inputs),
            steps=[
                LocalStep(path=step.path, position=step.position, uses=step.uses)
                for step in planned.steps
            ],
        )

    def run(self) -> LocalRun:
        """Run it to its end."""
        self._deadline = self._clock.now() + self._plan.timeout_s
        at: _At | None = _At(path=self._plan.steps[0].path)
        try:
            while at is not None:
                at = self._advance(at)
        finally:
            self._close()
        self._settle()
        self._run.resources = list(self._tracker.unwritten())
        return self._run

    def _advance(self, at: _At) -> _At | None:
        """Make one attempt; returns the one that follows, if any."""
        if self._ended_by_cancel():
            return None
        concluded = self._attempt(at)
        if concluded.decided.state is StepState.SUSPENDED:
            reply = self._asked(at, concluded)
            if self._ended_by_cancel():
                return None
            concluded = self._answered(at, concluded, reply)
        decided, record = concluded.decided, concluded.record
        if decided.outcome is not None:
            self._end(decided.outcome, record.run_code, record.run_message)
            return None
        self._wait(decided)
        if decided.state is StepState.RETRYING:
            failure = Failure(code=record.code, message=record.message)
            recovers_from = failure if decided.recovering else None
            return _At(path=at.path, number=at.number + 1, failure=recovers_from)
        if decided.next_step:
            return _At(path=decided.next_step)
        if not self._ended_by_cancel():
            self._end(ExecutionState.SUCCEEDED)
        return None

    def _ended_by_cancel(self) -> bool:
        if self._cancelled.is_set():
            self._end(ExecutionState.CANCELLED, Code.CANCELLED.value, "Cancelled.")
        return self._cancelled.is_set()

    # --- one attempt
    def _attempt(self, at: _At) -> AttemptOutcome:
        attempt = Attempt(self._resumable, at.path, number=at.number, recovers_from=at.failure)
        began = self._clock.now()
        concluded = self._concluded(attempt, at)
        self._note(concluded, self._clock.now() - began)
        return concluded

    def _concluded(self, attempt: Attempt, at: _At) -> AttemptOutcome:
        if self._clock.now() >= self._deadline:
            return attempt.overdue()
        prepared = attempt.prepare()
        if prepared is None:
            return attempt.skipped()
        if isinstance(prepared, StepResult):
            return attempt.concluded(prepared)
        try:
            runtime = self._open()
        except RuntimeStartError as error:
            return attempt.concluded(_failed(at, Code.RESOURCE_ERROR, str(error)))
        return self._ran(attempt, prepared, runtime)

    def _ran(self, attempt: Attempt, frame: Run, runtime: Runtime) -> AttemptOutcome:
        step, said = attempt.step, AttemptOutput(now=lambda: datetime.now(UTC))
        result = runtime.run(
            frame,
            deadline=min(self._clock.now() + step.timeout_s, self._deadline),
            cancelled=self._cancelled,
            on_frame=lambda heard: self._hear(heard, step, said),
        )
        over = result.code is Code.TIMEOUT and self._clock.now() >= self._deadline
        concluded = attempt.concluded(result, said, run_is_over=over)
        for line in concluded.record.lines:
            self._watcher.said(step.path, line.level, line.message)
        if result.trace:
            self._watcher.raised(step.path, self._masked(result.trace))
        return concluded

    def _asked(self, at: _At, asked: AttemptOutcome) -> ApprovalReply | None:
        """While a person is asked the context is gone, and the run's time stands."""
        self._close()
        began = self._clock.now()
        reply = self._watcher.asks(at.path, asked.record.question, asked.decided.pause_s)
        self._deadline += self._clock.now() - began
        return reply

    def _answered(
        self, at: _At, asked: AttemptOutcome, reply: ApprovalReply | None
    ) -> AttemptOutcome:
        attempt = Attempt(self._resumable, at.path, number=at.number, recovers_from=at.failure)
        concluded = attempt.answered(reply, "Nobody answered.")
        self._note(concluded, 0.0, inputs=asked.record.inputs)
        return concluded

    def _hear(self, frame: Log | Progress | Cost, step: PlannedStep, said: AttemptOutput) -> None:
        said.hear(frame)
        if step.sensitive:
            return  # what it marks is known at its end only: until then its lines are kept
        masker = self._resumable.memory.masker
        for line in said.take_lines():
            self._watcher.said(step.path, line.level, line.masked_by(masker).message)
        if isinstance(frame, Progress):
            self._watcher.progressed(step.path, frame.fraction, self._masked(frame.message))

    def _note(
        self, concluded: AttemptOutcome, seconds: float, *, inputs: str | None = None
    ) -> None:
        run, record, memory = self._run, concluded.record, self._resumable.memory
        step = run.steps[self._plan.step(record.path).position]
        step.state, step.attempt = concluded.decided.state, record.attempt
        step.inputs, step.output = _value(inputs or record.inputs), _value(record.output)
        step.code, step.message, step.cause = record.code, record.message, record.cause
        step.seconds += seconds
        if record.costs:
            run.costs = self._resumable.budget.run_spent = dict(record.run_costs)
        if record.outputs is not None:
            run.outputs = _value(record.outputs)
        run.variables = memory.shown_variables()
        self._watcher.attempted(step)

    # --- between attempts
    def _wait(self, decided: Checkpoint) -> None:
        """A short backoff is waited for with the context open; else the context goes, and the run's time stands."""
        if parked := decided.wake_s:
            self._close()
            began = self._clock.now()
            self._pass(parked)
            self._deadline += self._clock.now() - began
        elif decided.retry_s:
            self._pass(min(decided.retry_s, self._deadline - self._clock.now()))

    def _pass(self, seconds: float) -> None:
        if seconds > 0:
            self._watcher.waits(seconds)
            self._clock.wait(seconds, self._cancelled)

    def _end(self, outcome: ExecutionState, code: str = "", message: str = "") -> None:
        self._run.state, self._run.code, self._run.message = outcome, code, message

    def _settle(self) -> None:
        """What did not come to its end has one now, as when a worker closes a run."""
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
        placement = Placement(
            tenant_id=TENANT,
            tenant_number=0,
            execution_id=str(self._resumable.memory.metadata.execution_id),
            epoch=self._epoch,
            user_id=TENANT,
            request_id=self._request_id,
        )
        self._runtime = self._backend.start(
            placement, grants=self._grants, on_resource=self._hear_resource
        )
        self._runtime.open()
        return self._runtime

    def _close(self) -> None:
        if self._runtime is not None:
            for error in self._runtime.close(CLOSE_SECONDS):
                self._watcher.said("", "warning", self._masked(f"closing the context: {error}"))
            self._runtime = None
            self._tracker.end_killed()

    def _hear_resource(self, frame: Resource) -> None:
        self._tracker.report(replace(frame, error=self._masked(frame.error)))

    def _masked(self, text: str) -> str:
        return self._resumable.memory.masker.mask(text)


def _failed(at: _At, code: Code, message: str) -> StepResult:
    return StepResult.failed(step=at.path, attempt=at.number, code=code, message=message)


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
