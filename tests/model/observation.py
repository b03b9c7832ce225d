"""The result of a run, read from the database."""

from decimal import Decimal
from uuid import UUID

from django.db.models import Sum

from executions.models import Approval, CostRecord, ExecutionEvent, Step
from tenants.scope import TenantRef, tenant_scope
from tests.factories import run_of
from tests.model.driver import Driver
from tests.model.outcome import Outcome, StepOutcome

CLOCK_S = 15.0  # by how much less is waited when part of a backoff has passed elsewhere


def observed(tenant: TenantRef, execution_id: UUID, driver: Driver) -> Outcome:
    """As the model would say it."""
    run = run_of(tenant, execution_id)
    with tenant_scope(tenant):
        steps = {step.path: _step(step) for step in Step.objects.filter(execution_id=run.pk)}
        events = list(
            ExecutionEvent.objects.filter(execution_id=run.pk, kind__startswith="step.")
            .order_by("sequence")
            .values_list("step", "data")
        )
        asked = Approval.objects.filter(execution_id=run.pk).order_by("number")
        questions = list(asked.values_list("step", "state"))
        billed = CostRecord.objects.filter(execution_id=run.pk).aggregate(sum=Sum("amount"))["sum"]
    tokens = Decimal(str(run.costs.get("tokens", 0)))
    assert tokens == (billed or 0)
    backoffs = {
        (step, data["attempt"]): data["retry_s"] for step, data in events if data.get("retry_s")
    }
    return Outcome(
        state=run.state,
        code=run.code,
        steps=steps,
        outputs=(run.outputs or {}) if run.state == "succeeded" else None,
        variables=run.variables,
        tokens=tokens,
        calls=driver.calls,
        backoffs=[(path, seconds) for (path, _), seconds in backoffs.items()],
        parks=[(step, data["wake_s"]) for step, data in events if data.get("wake_s")],
        waits=[
            (failed[0], _whole(seconds, backoffs.get(failed, 0.0)))
            for failed, seconds in driver.waits.items()
        ],
        questions=questions,
        contexts=sum(len(host.backend.runtimes) for host in driver.hosts),
    )


def _step(step: Step) -> StepOutcome:
    return StepOutcome(
        state=step.state,
        attempt=step.attempt,
        code=step.code,
        output=step.output,
        recovered=step.cause == "recovered",
    )


def _whole(seconds: float, backoff: float) -> float:
    """The backoff that was waited for, if what was waited is what was left of it."""
    return backoff if 0 <= backoff - seconds < CLOCK_S else seconds
