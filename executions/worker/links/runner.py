"""One link of a chain: claim and open before it, run it, count out and close after it.

Timing: background-worker.
Model: sync; the step's own code runs in a runtime, never here.
Guarantee: as the step's; a completed step never runs again, since the claim and the checkpoint are fenced.
Failure: abort: the link raises a code-only exception, the chain stops and Flower shows FAILURE.
"""

import threading
from dataclasses import dataclass

from executions.placement.chain import ChainSpec, ChainTail, following
from executions.placement.run_scope import run_scope
from executions.selectors.active_run import load_run
from executions.semantics.attempt import Failure
from executions.transitions.claim import Claim, Refusal
from executions.worker.boot import WorkerBoot
from executions.worker.links.claiming import try_claim
from executions.worker.links.closing import close_context
from executions.worker.links.context import OpenContext
from executions.worker.links.interruption import InterruptReason, LinkInterrupted
from executions.worker.links.opening import open_context
from executions.worker.links.step_runner import StepFailed, StepRunner
from executions.worker.log_ids import log_ids
from foundation.logs import bind, unbind
from resources.placement import Placement
from tenants.scope import keep_connections

__all__ = ["LinkNote", "LinkRunner", "NoClaim", "StepFailed"]


class NoClaim(RuntimeError):
    """The body ran without a note from task_prerun, so nothing was claimed: a broken installation."""


@dataclass(kw_only=True)
class LinkNote:
    """The result of task_prerun; Celery swallows its errors, so the body looks here."""

    placement: Placement
    refusal: Refusal | None = None
    context: OpenContext | None = None
    claim: Claim | None = None
    error: Failure | None = None  # the context could not be opened
    body_ended: bool = False


# The two signals and the body run in one thread; a message that came twice runs in two, under the same task id.
Delivery = tuple[str, int]


class LinkRunner:
    """The links that this worker is running."""

    def __init__(self, boot: WorkerBoot) -> None:
        self._boot = boot
        self._notes: dict[Delivery, LinkNote] = {}
        self._lock = threading.Lock()

    # --- task_prerun
    def begin(self, task_id: str, placement: Placement, path: str) -> None:
        """Claim the step, then open or join the context; the result is kept for the body."""
        keep_connections()
        self._boot.contexts.link_begins(placement.key)
        note = LinkNote(placement=placement)
        with self._lock:
            self._notes[_delivery(task_id)] = note
        if not self._boot.may_claim():
            # The loop hands the placement back, or another worker has ended it.
            note.refusal = Refusal.STALE
            return
        joined = self._boot.contexts.join_ahead(placement.key, path)
        bind(log_ids(placement))
        if joined:
            note.context, note.claim = joined
            return
        with self._boot.contexts.claiming(placement.key), run_scope(placement.tenant_id):
            claimed = try_claim(placement, path, may_repeat=self._boot.may_repeat)
            if isinstance(claimed, Refusal):
                note.refusal = claimed
                return
            # An error from here on leaves a claim without a link; the loop finds it and hands it back.
            context = self._boot.contexts.join(placement, lambda: _new_context(placement))
        note.context, note.claim = context, claimed
        if not claimed.wait_s:
            note.error = open_context(self._boot, context, claimed.left_s)

    # --- the body
    def run(self, task_id: str, path: str, rest: ChainTail) -> ChainTail:
        """Act on the result of task_prerun; returns the links that follow, as Celery keeps the rest of a chain.

        None follows where a run is parked, or begun anew under another epoch. A window at its end extends itself.
        """
        note = self._notes.get(_delivery(task_id))
        if note is None:
            raise NoClaim("task_prerun left no note for this link")
        if note.refusal is Refusal.DONE:
            return rest
        if note.refusal is not None:
            raise LinkInterrupted(InterruptReason(note.refusal.value))
        if note.context is None or note.claim is None:
            raise NoClaim("task_prerun could not claim this link")
        try:
            next_step = StepRunner(self._boot, note.context).run(path, note.claim, note.error)
        finally:
            _end_body(note)
        if not next_step:
            return []
        placement, plan = note.context.placement, note.context.run.plan
        return rest or following(ChainSpec(placement=placement, plan=plan, first=next_step))

    # --- task_postrun
    def end(self, task_id: str) -> None:
        """Count the link out; the last link of a context that is over closes it."""
        with self._lock:
            note = self._notes.pop(_delivery(task_id), None)
        if note is None:
            return
        _end_body(note)
        try:
            if note.context and self._boot.contexts.leave(note.context):
                close_context(self._boot, note.context)
        finally:
            self._boot.contexts.link_ends(note.placement.key)
            unbind()


def _delivery(task_id: str) -> Delivery:
    return task_id, threading.get_ident()


def _end_body(note: LinkNote) -> None:
    if note.context is not None and not note.body_ended:
        note.body_ended = True
        note.context.finish_body()


def _new_context(placement: Placement) -> OpenContext:
    run = load_run(placement.tenant_id, placement.execution_id)
    if run is None:
        raise NoClaim("the execution is gone")
    return OpenContext(placement=placement, run=run)
