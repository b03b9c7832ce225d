"""One link of a chain: claim and open before it, run it, count out and close after it.

Timing: background-worker. Model: sync; the step's own code runs in a runtime, never here.
Guarantee: at-least-once per step, and a completed step never runs again; the claim and the checkpoint are fenced.
Failure: abort: the link raises a code-only exception, the chain stops and Flower shows FAILURE.
"""

import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

from celery.exceptions import Ignore

from executions.blueprint.errors import BadReference
from executions.blueprint.expressions import resolve
from executions.chain import ChainSpec, publish
from executions.decisions import after_step
from executions.scope import run_scope
from executions.seeds import derive_seed
from executions.selectors import resumable
from executions.states import ExecutionState
from executions.transitions.checkpoint import write_checkpoint
from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.fence import Placement
from executions.worker.closing import close_context
from executions.worker.contexts import OpenContext
from executions.worker.machine import Machine
from isolane.protocol import Log, Progress, Run
from isolane.results import Code, StepResult
from resources.runtimes.base import Placement as RuntimePlacement
from resources.runtimes.base import RuntimeStartError
from tenants.selectors import schema_of

logger = logging.getLogger(__name__)


class StepFailed(Exception):
    """Carries a code and nothing else: what Flower shows must not leak what a step said."""


class NoClaim(RuntimeError):
    """The body ran without a note from task_prerun, so nothing was claimed: a broken installation."""


@dataclass(kw_only=True)
class Note:
    """What task_prerun came to; Celery swallows its errors, so the body looks here."""

    placement: Placement
    refusal: Refusal | None = None
    context: OpenContext | None = None
    claim: Claim | None = None
    error: str = ""


class Links:
    """The links that this worker is running, by task id."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._notes: dict[str, Note] = {}
        self._lock = threading.Lock()

    # --- task_prerun
    def begin(self, task_id: str, placement: Placement, path: str) -> None:
        """Claim the step, then open or join the context; what happened is kept under the task's id."""
        self._machine.contexts.link_begins(placement.key)
        note = Note(placement=placement)
        with self._lock:
            self._notes[task_id] = note
        if self._machine.draining.is_set() or not self._machine.lease_is_fresh():
            # The loop hands the placement back, or others have ended it.
            note.refusal = Refusal.STALE
            return
        with run_scope(placement.tenant_id):
            claimed = claim_step(placement, path, worker=self._machine.node_name)
            if isinstance(claimed, Refusal):
                note.refusal = claimed
                return
            # An error from here on leaves a claim that nobody works on; the loop finds it and hands it back.
            context = self._machine.contexts.join(placement, lambda: _new_context(placement))
        note.context, note.claim = context, claimed
        note.error = self._open(context)

    def _open(self, context: OpenContext) -> str:
        """Start the runtime and open the context in it, unless an earlier link has; returns what went wrong."""
        if context.runtime is not None:
            return ""
        identity = RuntimePlacement(
            tenant_id=schema_of(context.placement.tenant_id),
            tenant_number=context.placement.tenant_id,
            execution_id=str(context.placement.execution_id),
            epoch=context.placement.epoch,
        )
        try:
            context.runtime = self._machine.backends[context.run.isolation].start(identity)
            context.runtime.open()
        except RuntimeStartError as error:
            # Why is for the operator: it may name paths and packages of the machine.
            logger.error("runtime not started: %s", error, extra={"event": "RUNTIME_NOT_STARTED"})  # noqa: TRY400 - no trace wanted
            return "The runtime could not be started; the worker's log says why."
        return ""

    # --- the body
    def run(self, task_id: str, path: str, *, is_last_of_window: bool) -> None:
        """Act on what task_prerun came to: run the step, ignore a duplicate, or go on to the next."""
        note = self._notes.get(task_id)
        if note is None:
            raise NoClaim("task_prerun left no note for this link")
        if note.refusal is Refusal.DONE:
            return
        if note.refusal is not None:
            raise Ignore(note.refusal.value)
        if note.context is None or note.claim is None:
            raise NoClaim("task_prerun could not claim this link")
        try:
            result = self._result(note.context, note.claim, path, note.error)
        except Exception:
            # A fault of ours must fail the step, or the run would be tried again and again.
            logger.exception("step not run", extra={"event": "STEP_NOT_RUN", "step": path})
            result = StepResult.failed(
                step=path,
                attempt=note.claim.attempt,
                code=Code.UNKNOWN_ERROR,
                message="The worker could not run this step; its log says why.",
            )
        self._settle(note.context, result, is_last_of_window=is_last_of_window)

    def _result(self, context: OpenContext, claim: Claim, path: str, error: str) -> StepResult:
        if error or context.runtime is None:
            return StepResult.failed(
                step=path,
                attempt=claim.attempt,
                code=Code.RESOURCE_ERROR,
                message=error or "no runtime",
            )
        step = context.run.plan.step(path)
        try:
            parameters = resolve(dict(step.parameters), context.run.memory.scope())
        except BadReference as bad:
            return StepResult.failed(
                step=path, attempt=claim.attempt, code=Code.POLICY_VIOLATION, message=bad.detail
            )
        frame = Run(
            step=path,
            uses=step.uses,
            parameters=parameters,
            attempt=claim.attempt,
            seed=derive_seed(context.run.seed, step.position),
            timeout_s=step.timeout_s,
            idempotency_key=f"{context.placement.execution_id}:{path}",
        )
        return context.runtime.run(
            frame,
            deadline=time.monotonic() + step.timeout_s,
            cancelled=context.cancelled,
            on_frame=lambda seen: _relay(context, seen),
        )

    def _settle(self, context: OpenContext, result: StepResult, *, is_last_of_window: bool) -> None:
        if context.lost:
            raise Ignore("the placement is over")
        decided = after_step(context.run.plan, result)
        with run_scope(context.placement.tenant_id):
            written = write_checkpoint(context.placement, result, decided)
        if not written:
            context.lost = True
            raise Ignore("refused by the fence")
        context.ended = decided.outcome is not None
        if decided.outcome not in {None, ExecutionState.SUCCEEDED}:
            raise StepFailed(str(result.code))
        context.run.memory.remember(result.step, result.output)
        if decided.next_step and is_last_of_window:
            self._extend(context, decided.next_step)

    def _extend(self, context: OpenContext, path: str) -> None:
        plan = context.run.plan
        publish(
            ChainSpec(
                tenant_id=context.placement.tenant_id,
                execution_id=context.placement.execution_id,
                epoch=context.placement.epoch,
                lane=self._machine.lane,
                blueprint=plan.name,
                paths=[step.path for step in plan.from_path(path)],
            )
        )

    # --- task_postrun
    def end(self, task_id: str) -> None:
        """Count the link out; whoever leaves an ended run last closes its context."""
        with self._lock:
            note = self._notes.pop(task_id, None)
        if note is None:
            return
        try:
            if note.context and self._machine.contexts.leave(note.context):
                close_context(self._machine, note.context)
        finally:
            self._machine.contexts.link_ends(note.placement.key)


def _new_context(placement: Placement) -> OpenContext:
    run = resumable(placement.execution_id)
    if run is None:
        raise NoClaim("the execution is gone")
    return OpenContext(placement=placement, run=run)


def _relay(context: OpenContext, frame: Log | Progress) -> None:
    ids: dict[str, Any] = {
        "execution_id": str(context.placement.execution_id),
        "tenant_id": schema_of(context.placement.tenant_id),
        "step": frame.step,
    }
    match frame:
        case Log():
            logger.info("%s", frame.message, extra={"event": "STEP_LOG", **ids})
        case Progress():
            logger.debug("%.0f %%", frame.fraction * 100, extra={"event": "STEP_PROGRESS", **ids})
