"""Celery's part, link by link: the two signals around the body. And nodes that behave as a test needs."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from celery.exceptions import Ignore
from django.db.models.functions import Now

from executions.models import Approval, Execution, Step
from executions.placement.models import Due
from executions.services.waking import wake_due
from executions.states import TicketState
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from isolane.protocol import Cost, Log, Progress, Run
from isolane.results import Code, StepResult
from resources.placement import Placement
from resources.runtimes.base import OnFrame
from resources.runtimes.stub import Behaviour, fails, succeeds
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import backend_of, run_of, ticket_of

PAST = timedelta(seconds=1)


def run_link(links: LinkRunner, placement: Placement, path: str) -> bool:
    """One link; whether the chain goes on."""
    links.begin(path, placement, path)
    try:
        return bool(links.run(path, path, []))
    finally:
        links.end(path)


def drive(tenant: TenantRef, links: LinkRunner, placement: Placement) -> Execution:
    """Link after link, in new contexts too, until the run no longer holds its slot or nothing more happens."""
    execution_id = placement.execution_id
    while (ticket := ticket_of(execution_id)) and ticket.state == TicketState.PLACED:
        placement = replace(placement, epoch=ticket.epoch)
        try:
            run_link(links, placement, run_of(tenant, execution_id).next_step)
        except (StepFailed, Ignore):
            break
    return run_of(tenant, execution_id)


def let_its_time_come(tenant: TenantRef, placement: Placement) -> int:
    """Let the wait of a parked run be over, and wake it as the tick does."""
    with platform_scope():
        Due.objects.filter(ref=placement.execution_id).update(at=Now() - PAST)
    with tenant_scope(tenant):
        asked = Approval.objects.filter(execution_id=placement.execution_id)
        asked.update(expires_at=Now() - PAST)
        steps = Step.objects.filter(execution_id=placement.execution_id)
        steps.exclude(retry_at=None).update(retry_at=Now() - PAST)
    return wake_due()


# --- looking
def runs_of(boot: WorkerBoot, placement: Placement) -> list[Run]:
    """Return the RUN frames that the runtimes were sent for this run."""
    mine = placement.execution_id
    return [run for at, run in backend_of(boot).runs if at.execution_id == mine]


def epochs_closed(boot: WorkerBoot, placement: Placement) -> list[int]:
    """Return the epochs of the run's contexts that were torn down."""
    mine = placement.execution_id
    return [at.epoch for at in backend_of(boot).closed if at.execution_id == mine]


# --- nodes
def script(boot: WorkerBoot, **nodes: Behaviour) -> None:
    """From now on these nodes behave so."""
    backend = backend_of(boot)
    backend.script = {**backend.script, **nodes}


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One after the other, call by call; the last one for ever."""
    left = list(behaviours)

    def behave(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        behaviour = left.pop(0) if len(left) > 1 else left[0]
        return behaviour(run, cancelled, on_frame)

    return behave


def saying(frames: Iterable[Log | Progress | Cost], then: Behaviour) -> Behaviour:
    """Says this first."""

    def behave(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        for frame in frames:
            on_frame(frame)
        return then(run, cancelled, on_frame)

    return behave


def costing(amount: float, then: Behaviour, *, kind: str = "tokens") -> Behaviour:
    """Costs something first."""
    return saying([Cost(step="", kind=kind, amount=amount)], then)


def doing(work: Any, then: Behaviour) -> Behaviour:
    """Does something of the test's own first."""

    def behave(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
        work()
        return then(run, cancelled, on_frame)

    return behave


def dying(boot: WorkerBoot, tenant: TenantRef, code: Code = Code.UNKNOWN_ERROR) -> Behaviour:
    """Fails, and takes the tenant's runtimes along."""

    def die() -> None:
        for context in boot.contexts.all():
            if context.placement.tenant_id == tenant.id and context.runtime:
                context.runtime.kill()

    return doing(die, fails(code, "died"))


def echo(run: Run, cancelled: threading.Event, on_frame: OnFrame) -> StepResult:
    """Returns its parameters."""
    return succeeds(run.parameters)(run, cancelled, on_frame)


def setting(output: Any, pause_s: float = 0.0, **variables: Any) -> Behaviour:
    """Sets variables, or pauses the run."""
    return lambda run, cancelled, on_frame: StepResult.succeeded(
        step=run.step, attempt=run.attempt, output=output, variables=variables, pause_s=pause_s
    )


def asking(question: str = "Pay?", expires_s: float = 3600.0, **variables: Any) -> Behaviour:
    """Has a person asked."""
    return lambda run, cancelled, on_frame: StepResult.succeeded(
        step=run.step,
        attempt=run.attempt,
        output=None,
        variables=variables,
        pause_s=expires_s,
        question=question,
    )
