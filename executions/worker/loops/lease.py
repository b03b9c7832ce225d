"""The lease loop: renews the lease and checks every placement that this worker holds, once a second.

Timing: background-worker, in a thread with its own connection.
Model: sync.
Guarantee: at-least-once sending; a chain that is not claimed within 2 s is sent again under the same epoch.
Failure: without a renewal for 10 s the runtimes are killed; a lease that is no longer ours ends the process.
"""

import logging
import os
import time
from collections.abc import Callable
from functools import partial

from django.db import Error as DatabaseError

from executions.models import Execution, Step
from executions.placement.chain import SHORT_TRY_SECONDS
from executions.placement.dispatch import send
from executions.placement.registry import HeldPlacement, renew
from executions.placement.run_scope import run_scope
from executions.semantics.reasons import EndReason
from executions.states import StepState
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from executions.worker.links.closing import (
    NO_CONTEXT,
    ContextEnd,
    close_context,
    dispose,
    end_of,
    end_without_link,
    tear_down,
)
from executions.worker.links.connection_events import write_last_connections
from executions.worker.links.context import OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.loops.periodic import Periodic
from foundation.logs import bound
from resources.placement import Placement
from resources.runtimes.faults import reported
from tenants.scope import platform_scope

EXIT_FENCED = 75  # EX_TEMPFAIL: restart me
DRAINING = PlacementEnd(reason=EndReason.WORKER_DRAINING)
logger = logging.getLogger(__name__)


class LeaseLoop(Periodic):
    """Runs until the worker stops."""

    def __init__(self, boot: WorkerBoot, *, exit_process: Callable[[int], None] = os._exit) -> None:
        super().__init__("lease", period=boot.clocks.renewal)
        self._boot = boot
        self._exit_process = exit_process
        self._broker_away = False

    def turn(self) -> None:
        """Renew the lease, then check each placement."""
        # Before the renewal: a context that opens during it may be placed too late to be in its answer.
        open_before = self._boot.contexts.all()
        asked_at = time.monotonic()
        with platform_scope():
            placements = renew(
                boot=self._boot.id,
                node_name=self._boot.node_name,
                lane=self._boot.lane,
                draining=self._boot.draining.is_set(),
                reachable=self._boot.lane_probe.is_healthy,
            )
        if placements is None:
            self._drop_everything()
            return
        self._boot.renewed(asked_at)
        self._broker_away = False
        keys = {held.placement.key for held in placements}
        for context in open_before:
            if context.key not in keys:
                self._drop(context)
        for held in placements:
            self._check_alone(held)
        self._boot.contexts.forget(keys)

    def _check_alone(self, held: HeldPlacement) -> None:
        """Check one placement; a fault in it stops neither the others nor the loop."""
        ids: dict[str, object] = {"execution_id": str(held.placement.execution_id)}
        try:
            ids = log_ids(held.placement)
            with bound(ids):
                self._check(held)
        except DatabaseError:
            raise
        except Exception:
            logger.exception("placement not checked", extra={"event": "NOT_TENDED", **ids})

    def _check(self, held: HeldPlacement) -> None:
        """Close, end or send again a placement that no thread works on."""
        contexts, placement = self._boot.contexts, held.placement
        context = contexts.get(placement.key)
        if context and held.cancel_requested:
            context.cancel()
        if contexts.idle_seconds(placement.key) == 0 and not _is_stuck_publishing(context, held):
            return
        if context and contexts.take(context):
            # An earlier close could not be written.
            self._submit_close(placement, partial(close_context, self._boot, context))
        elif held.cancel_requested:
            self._end(placement, PlacementEnd(reason=EndReason.CANCELLED), cancel=True)
        elif held.overdue:
            self._end(placement, PlacementEnd(reason=EndReason.OVERDUE), overdue=True)
        elif self._boot.draining.is_set():
            self._end(placement, DRAINING)
        elif contexts.idle_seconds(placement.key) >= self._boot.clocks.resend:
            self._end_or_resend(placement)

    def _end_or_resend(self, placement: Placement) -> None:
        """Act on a placement that stands still: a message was lost, or the answer to a claim or a close."""
        contexts = self._boot.contexts
        context = contexts.get(placement.key)
        with run_scope(placement.tenant_id):
            run = Execution.objects.filter(pk=placement.execution_id)
            outcome, wake_at = run.values_list("outcome", "wake_at").first() or ("", None)
            claimed = Step.objects.filter(
                execution_id=placement.execution_id, state=StepState.RUNNING
            ).exists()
        if contexts.idle_seconds(placement.key) < self._boot.clocks.resend:
            return  # a link has come meanwhile: the claim may be its own
        contexts.reset_idle(placement.key)
        if outcome or wake_at:
            self._end(placement, PlacementEnd(reason=EndReason.CLOSE_UNWRITTEN))
        elif claimed and not (context and context.has_claim_ahead):
            self._end(placement, PlacementEnd(reason=EndReason.CLAIM_UNATTENDED, lost=True))
        elif not self._broker_away:
            # After a failure no other try in this turn: the lease must not wait for the broker.
            self._broker_away = not send(placement, timeout=SHORT_TRY_SECONDS)

    def _end(
        self,
        placement: Placement,
        ending: PlacementEnd,
        *,
        cancel: bool = False,
        overdue: bool = False,
    ) -> None:
        context = self._boot.contexts.get(placement.key)
        if context and not self._boot.contexts.abandon(context):
            return  # a link has come meanwhile

        def dispose_context() -> ContextEnd:
            if context is None:
                return NO_CONTEXT
            dispose(context)
            write_last_connections(context)
            return end_of(context)

        end = partial(
            end_without_link,
            placement,
            ending,
            cancel=cancel,
            overdue=overdue,
            end_context=dispose_context,
        )
        self._submit_close(placement, end)

    def _submit_close(self, placement: Placement, work: Callable[[], None]) -> None:
        """Close in another thread: the lease must not wait for runtimes and remote servers.

        Until then the placement counts as busy.
        """
        contexts = self._boot.contexts
        contexts.link_begins(placement.key)

        def close() -> None:
            try:
                work()
            finally:
                contexts.link_ends(placement.key)

        self._boot.submit_close(close)

    def hand_back_idle(self) -> None:
        """Hand back the placements that are between two steps: the worker stops, and they go on elsewhere."""
        for context in self._boot.contexts.all():
            if self._boot.contexts.idle_seconds(context.key) > 0:
                with bound(context.log_ids):
                    self._end(context.placement, DRAINING)

    def _drop(self, context: OpenContext) -> None:
        """Dispose of a context whose placement is over and write nothing, unless it was closed meanwhile."""
        if self._boot.contexts.get(context.key) is not context:
            return
        _kill_runtime(context)
        with bound(context.log_ids):
            if self._boot.contexts.take(context):
                self._submit_close(context.placement, partial(tear_down, context))

    def failed(self) -> None:
        """Kill the runtimes if the lease is not fresh: another worker may step in soon."""
        if not self._boot.lease_is_fresh():
            kill_runtimes(self._boot)

    def _drop_everything(self) -> None:
        logger.error(
            "the lease is no longer ours; ending to be restarted", extra={"event": "FENCED"}
        )
        try:
            kill_runtimes(self._boot)
            for backend in self._boot.backends.values():
                with reported("runtimes not ended"):
                    # Blocks until pending kills finish; otherwise a runner that is stopped for its kill would stay.
                    backend.stop()
        finally:
            self._exit_process(EXIT_FENCED)


def _is_stuck_publishing(context: OpenContext | None, held: HeldPlacement) -> bool:
    """Say whether the run must end, no step is executing, and its link is still publishing the next one.

    A broker that does not answer may keep the link there for long.
    """
    must_end = held.cancel_requested or held.overdue
    return must_end and context is not None and context.exit is None and not context.working


def kill_runtimes(boot: WorkerBoot) -> None:
    """Kill the runtime of every open context; what their steps would have written is lost, not failed."""
    for context in boot.contexts.all():
        _kill_runtime(context)


def _kill_runtime(context: OpenContext) -> None:
    """Lose a context and kill its runtime. A runtime that cannot be killed stops no other kill."""
    context.lose()
    if context.runtime is not None:
        with reported("a runtime was not killed"):
            context.runtime.kill()
