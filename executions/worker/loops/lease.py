"""The worker's loop: renews the lease and tends what this worker holds, once a second.

Timing: background-worker, in a thread with its own connection. Model: sync.
Guarantee: at-least-once sending; what is not claimed within 2 s is sent again under the same epoch.
Failure: without a renewal for 10 s the runtimes are killed; a lease that is no longer ours ends the process.
"""

import logging
import os
import time
from collections.abc import Callable
from functools import partial

from django.db import Error as DatabaseError

from executions.models import Execution, Step
from executions.placement.admission import Placed
from executions.placement.dispatch import send
from executions.placement.registry import Held, renew
from executions.placement.run_scope import run_scope
from executions.states import StepState
from executions.transitions.close import UNKNOWN, PlacementEnd, Settlement
from executions.transitions.fence import Placement
from executions.worker.boot import WorkerBoot
from executions.worker.links.closing import close_context, dispose, end_without_link, tear_down
from executions.worker.links.context import OpenContext
from executions.worker.log_ids import log_ids
from executions.worker.loops.periodic import Periodic
from executions.worker.resources.revocation import settlement_of
from foundation.logs import bound
from resources.runtimes.faults import reported
from tenants.scope import platform_scope

RESEND_AFTER_SECONDS = 2.0
EXIT_FENCED = 75  # EX_TEMPFAIL: restart me
DRAINING = PlacementEnd(reason="worker draining")
logger = logging.getLogger(__name__)


class LeaseLoop(Periodic):
    """Runs until the worker stops."""

    def __init__(
        self, machine: WorkerBoot, *, exit_process: Callable[[int], None] = os._exit
    ) -> None:
        super().__init__("lease")
        self._machine = machine
        self._exit_process = exit_process
        self._broker_away = False

    def turn(self) -> None:
        """Renew, then tend each placement."""
        # Before the renewal: what opens during it may be placed too late to be in its answer.
        open_before = self._machine.contexts.all()
        asked_at = time.monotonic()
        with platform_scope():
            held = renew(
                self._machine.boot,
                draining=self._machine.draining.is_set(),
                hears=self._machine.echo.is_sure,
            )
        if held is None:
            self._drop_everything()
            return
        self._machine.renewed(asked_at)
        self._broker_away = False
        keys = {(ticket.execution_id, ticket.epoch) for ticket in held}
        for context in open_before:
            if context.key not in keys:
                self._lose(context)
        for ticket in held:
            self._tend_alone(ticket)
        self._machine.contexts.forget(keys)

    def _tend_alone(self, ticket: Held) -> None:
        """One bad placement must cost neither the others their care nor this worker its loop."""
        placement = Placement(
            tenant_id=ticket.tenant_id,
            execution_id=ticket.execution_id,
            epoch=ticket.epoch,
            boot=self._machine.boot,
            worker=self._machine.node_name,
        )
        whose: dict[str, object] = {"execution_id": str(ticket.execution_id)}
        try:
            whose = log_ids(placement)
            with bound(whose):
                self._tend(placement, ticket)
        except DatabaseError:
            raise
        except Exception:
            logger.exception("placement not tended", extra={"event": "NOT_TENDED", **whose})

    def _tend(self, placement: Placement, ticket: Held) -> None:
        contexts = self._machine.contexts
        context = contexts.get(placement.key)
        if context and ticket.cancel_requested:
            context.cancelled.set()
        if contexts.idle_seconds(placement.key) == 0 and not _hangs(context, ticket):
            return
        if context and contexts.take(context):
            # An earlier close could not be written.
            self._later(placement, partial(close_context, self._machine, context))
        elif ticket.cancel_requested:
            self._end(placement, PlacementEnd(reason="cancelled"), cancel=True)
        elif ticket.overdue:
            self._end(placement, PlacementEnd(reason="overdue"), overdue=True)
        elif self._machine.draining.is_set():
            self._end(placement, DRAINING)
        elif contexts.idle_seconds(placement.key) >= RESEND_AFTER_SECONDS:
            self._nudge(placement)

    def _nudge(self, placement: Placement) -> None:
        """Nothing happens though something should: a message was lost, or the answer to a claim or a close."""
        contexts = self._machine.contexts
        context = contexts.get(placement.key)
        with run_scope(placement.tenant_id):
            run = Execution.objects.filter(pk=placement.execution_id)
            outcome, wake_at = run.values_list("outcome", "wake_at").first() or ("", None)
            claimed = Step.objects.filter(
                execution_id=placement.execution_id, state=StepState.RUNNING
            ).exists()
        if contexts.idle_seconds(placement.key) < RESEND_AFTER_SECONDS:
            return  # a link has come meanwhile: the claim may be its own
        contexts.restart_idle(placement.key)
        if outcome or wake_at:
            self._end(placement, PlacementEnd(reason="its end was not written"))
        elif claimed and not (context and context.ahead):
            self._end(placement, PlacementEnd(reason="claimed, but active in no thread", lost=True))
        elif not self._broker_away:
            self._send(placement)

    def _send(self, placement: Placement) -> None:
        """One short try, and after a failure no other in this turn: the lease must not wait for the broker."""
        placed = Placed(
            execution_id=placement.execution_id,
            tenant_id=placement.tenant_id,
            epoch=placement.epoch,
            boot=placement.boot,
            lane=self._machine.lane,
        )
        self._broker_away = not send(placed, bounded=True)

    def _end(
        self,
        placement: Placement,
        ending: PlacementEnd,
        *,
        cancel: bool = False,
        overdue: bool = False,
    ) -> None:
        context = self._machine.contexts.get(placement.key)
        if context and not self._machine.contexts.abandon(context):
            return  # a link has come meanwhile

        def disposed() -> Settlement | None:
            if context is None:
                return UNKNOWN
            dispose(context)
            return settlement_of(context)

        end = partial(
            end_without_link,
            placement,
            ending,
            cancel=cancel,
            overdue=overdue,
            dispose=disposed,
        )
        self._later(placement, end)

    def _later(self, placement: Placement, work: Callable[[], None]) -> None:
        """Elsewhere: the lease must not wait for runtimes and far sides. Meanwhile the placement counts as busy."""
        contexts = self._machine.contexts
        contexts.link_begins(placement.key)

        def done() -> None:
            try:
                work()
            finally:
                contexts.link_ends(placement.key)

        self._machine.later(done)

    def hand_back_idle(self) -> None:
        """The worker stops: what is between two steps is closed as it should be, and goes on elsewhere."""
        for context in self._machine.contexts.all():
            if self._machine.contexts.idle_seconds(context.key) > 0:
                with bound(log_ids(context.placement)):
                    self._end(context.placement, DRAINING)

    def _lose(self, context: OpenContext) -> None:
        """The placement is over: dispose, write nothing. One that was closed meanwhile is no longer in the table."""
        if self._machine.contexts.get(context.key) is not context:
            return
        _end_step(context)
        with bound(context.log_ids):
            if self._machine.contexts.take(context):
                self._later(context.placement, partial(tear_down, context))

    def failed(self) -> None:
        """Without a renewal for too long others may step in: stop before they do."""
        if not self._machine.lease_is_fresh():
            kill_runtimes(self._machine)

    def _drop_everything(self) -> None:
        logger.error(
            "the lease is no longer ours; ending to be restarted", extra={"event": "FENCED"}
        )
        try:
            kill_runtimes(self._machine)
            for backend in self._machine.backends.values():
                with reported("runtimes not ended"):
                    backend.stop()  # waits for who is just ending a runner, which would stay stopped for ever
        finally:
            self._exit_process(EXIT_FENCED)


def _hangs(context: OpenContext | None, ticket: Held) -> bool:
    """A run is to be ended at whose steps nobody is at work, though a link is in a thread: it publishes the next one.

    A broker that does not answer may take it long.
    """
    ending = ticket.cancel_requested or ticket.overdue
    return ending and context is not None and context.exit is None and not context.working


def kill_runtimes(machine: WorkerBoot) -> None:
    """End every step that runs here; what they would have written is lost, not failed."""
    for context in machine.contexts.all():
        _end_step(context)


def _end_step(context: OpenContext) -> None:
    """What it would have written is lost. A runtime that cannot be killed costs no other its end."""
    context.lost = True
    if context.runtime is not None:
        with reported("a runtime was not killed"):
            context.runtime.kill()
