"""One link of a chain: claim and open before it, run it, count out and close after it.

Timing: background-worker. Model: sync; the step's own code runs in a runtime, never here.
Guarantee: as the step's; a completed step never runs again, since the claim and the checkpoint are fenced.
Failure: abort: the link raises a code-only exception, the chain stops and Flower shows FAILURE.
"""

import logging
import threading
from dataclasses import dataclass

from celery.exceptions import Ignore
from django.db import Error as DatabaseError

from executions.placement.chain import ChainSpec, ChainTail, following
from executions.placement.run_scope import run_scope
from executions.selectors.active_run import load_run
from executions.semantics.attempt import Failure
from executions.transitions.claim import Claim, Refusal, claim_step
from executions.transitions.fence import Placement
from executions.transitions.refusal import note_refusal
from executions.worker.boot import WorkerBoot
from executions.worker.links.closing import close_context
from executions.worker.links.context import OpenContext
from executions.worker.links.step_runner import StepFailed, StepRunner
from executions.worker.log_ids import log_ids
from executions.worker.resources.granting import PlacementOver, ResourceNotGranted, grant_resources
from executions.worker.resources.tracking import track_report
from foundation.logs import bind, unbind
from isolane.results import Code
from resources.runtimes.base import Placement as RuntimePlacement
from resources.runtimes.base import RuntimeStartError
from tenants.selectors import schema_of

__all__ = ["LinkNote", "LinkRunner", "NoClaim", "StepFailed"]
logger = logging.getLogger(__name__)


class NoClaim(RuntimeError):
    """The body ran without a note from task_prerun, so nothing was claimed: a broken installation."""


@dataclass(kw_only=True)
class LinkNote:
    """What task_prerun came to; Celery swallows its errors, so the body looks here."""

    placement: Placement
    refusal: Refusal | None = None
    context: OpenContext | None = None
    claim: Claim | None = None
    error: Failure | None = None  # the context could not be opened
    rested: bool = False  # its body has ended


# The two signals and the body run in one thread; a message that came twice runs in two, under the same task id.
Delivery = tuple[str, int]


class LinkRunner:
    """The links that this worker is running."""

    def __init__(self, machine: WorkerBoot) -> None:
        self._machine = machine
        self._notes: dict[Delivery, LinkNote] = {}
        self._lock = threading.Lock()

    # --- task_prerun
    def begin(self, task_id: str, placement: Placement, path: str) -> None:
        """Claim the step, then open or join the context; what happened is kept for the body."""
        self._machine.contexts.link_begins(placement.key)
        note = LinkNote(placement=placement)
        with self._lock:
            self._notes[_delivery(task_id)] = note
        if self._machine.draining.is_set() or not self._machine.lease_is_fresh():
            # The loop hands the placement back, or others have ended it.
            note.refusal = Refusal.STALE
            return
        if ahead := self._machine.contexts.join_ahead(placement.key, path):
            bind(log_ids(placement))
            note.context, note.claim = ahead
            return
        bind(log_ids(placement))
        with self._machine.contexts.claiming(placement.key), run_scope(placement.tenant_id):
            claimed = claim_step(
                placement,
                path,
                worker=self._machine.node_name,
                may_repeat=self._machine.may_repeat,
            )
            if isinstance(claimed, Refusal):
                note.refusal = claimed
                if claimed is Refusal.STALE:
                    note_refusal(placement, "claim", path)
                return
            # An error from here on leaves a claim that nobody works on; the loop finds it and hands it back.
            context = self._machine.contexts.join(placement, lambda: _new_context(placement))
        note.context, note.claim = context, claimed
        if not claimed.wait_s:
            note.error = self._open(context, claimed.left_s)

    def _open(self, context: OpenContext, seconds_left: float) -> Failure | None:
        """Start the runtime and open the context in it, unless an earlier link has; returns what went wrong."""
        if context.runtime is not None:
            return None
        identity = RuntimePlacement(
            tenant_id=schema_of(context.placement.tenant_id),
            tenant_number=context.placement.tenant_id,
            execution_id=str(context.placement.execution_id),
            epoch=context.placement.epoch,
            user_id=context.run.requested_by,
            request_id=context.run.request_id,
        )
        try:
            grants = grant_resources(context, seconds_left=seconds_left)
            context.tracker.set_grants(grants, steps=[step.path for step in context.run.plan.steps])
            context.runtime = self._machine.backends[context.run.isolation].start(
                identity, grants=grants, on_resource=lambda frame: track_report(context, frame)
            )
            if not self._machine.lease_is_fresh():
                context.lost = True  # granting may have taken long: others may have the run by now
                return None
            context.runtime.open()
        except ResourceNotGranted as refused:
            logger.warning(
                "not granted: %s",
                refused.message,
                extra={"event": "RESOURCE_NOT_GRANTED", **log_ids(context.placement)},
            )
            return Failure(code=refused.code, message=refused.message)
        except PlacementOver:
            context.lost = True  # cancelled meanwhile, or ended by others: the loop sees to it
            return None
        except RuntimeStartError as error:
            if context.runtime is not None and context.runtime.lost:
                context.lost = True
                return None
            # Why is for the operator: it may name paths and packages of the machine.
            logger.error("runtime not started: %s", error, extra={"event": "RUNTIME_NOT_STARTED"})  # noqa: TRY400 - no trace wanted
            message = "The runtime could not be started; the worker's log says why."
            return Failure(code=Code.RESOURCE_ERROR, message=message)
        except DatabaseError:
            # No failure of the step: nothing of it has begun, and the loop hands it back.
            context.lost = True
            raise
        except Exception:
            # Issuers and resolvers may be of others.
            logger.exception("context not opened", extra={"event": "CONTEXT_NOT_OPENED"})
            message = "The context could not be opened; the worker's log says why."
            return Failure(code=Code.UNKNOWN_ERROR, message=message)
        return None

    # --- the body
    def run(self, task_id: str, path: str, rest: ChainTail) -> ChainTail:
        """Act on what task_prerun came to; returns the links that follow, as Celery keeps the rest of a chain.

        None follows where a run is parked, or begun anew under another epoch. A window at its end extends itself.
        """
        note = self._notes.get(_delivery(task_id))
        if note is None:
            raise NoClaim("task_prerun left no note for this link")
        if note.refusal is Refusal.DONE:
            return rest
        if note.refusal is not None:
            raise Ignore(note.refusal.value)
        if note.context is None or note.claim is None:
            raise NoClaim("task_prerun could not claim this link")
        try:
            body = StepRunner(self._machine, note.context, open_context=self._open)
            next_step = body.run(path, note.claim, note.error)
        finally:
            self._rest(note)
        if not next_step:
            return []
        return rest or following(self._spec(note.context, next_step))

    def _spec(self, context: OpenContext, path: str) -> ChainSpec:
        return ChainSpec(
            tenant_id=context.placement.tenant_id,
            execution_id=context.placement.execution_id,
            epoch=context.placement.epoch,
            lane=self._machine.lane,
            plan=context.run.plan,
            first=path,
        )

    def _rest(self, note: LinkNote) -> None:
        if note.context is not None and not note.rested:
            note.rested = True
            self._machine.contexts.rest(note.context)

    # --- task_postrun
    def end(self, task_id: str) -> None:
        """Count the link out; whoever leaves an ended run last closes its context."""
        with self._lock:
            note = self._notes.pop(_delivery(task_id), None)
        if note is None:
            return
        self._rest(note)
        try:
            if note.context and self._machine.contexts.leave(note.context):
                close_context(self._machine, note.context)
        finally:
            self._machine.contexts.link_ends(note.placement.key)
            unbind()


def _delivery(task_id: str) -> Delivery:
    return task_id, threading.get_ident()


def _new_context(placement: Placement) -> OpenContext:
    run = load_run(placement.tenant_id, placement.execution_id)
    if run is None:
        raise NoClaim("the execution is gone")
    return OpenContext(placement=placement, run=run)
