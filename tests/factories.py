"""Starting points of tests: registered workers, published blueprints, runs that wait or are placed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from executions.models import (
    Approval,
    CostRecord,
    Execution,
    ExecutionEvent,
    MonthlyCost,
    Step,
    StepLog,
)
from executions.placement.models import Due, Ticket, Worker
from executions.placement.registry import register, store_catalogue
from executions.semantics.attempt_record import AttemptRecord
from executions.services.publishing import publish
from executions.states import TicketState
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from isolane.protocol import NodeDescription, dump
from isolane.results import StepResult
from resources.placement import Placement
from resources.runtimes.stub import Behaviour, StubBackend, succeeds
from tenants.models import Quota, Tenant
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.selectors import tenant_by_schema
from tenants.services.tenants import create_tenant

LEVEL = "shared"
WORK = "work"  # the node that every step uses unless said otherwise


def make_tenant(schema: str, **said: Any) -> TenantRef:
    """A tenant that takes work: asked for, and made by a provisioner in this process."""
    create_tenant(schema=schema, actor="tests", **said)
    work_off()
    return tenant_by_schema(schema)


def make_boot(
    *,
    script: Mapping[str, Behaviour] | None = None,
    descriptions: Mapping[str, NodeDescription] | None = None,
    backend: StubBackend | None = None,
    capacity: int = 10,
    name: str = "w1@test",
) -> WorkerBoot:
    """A worker boot with a stub for its runtimes, registered and placeable."""
    backend = backend or StubBackend(
        level=LEVEL, script=script or {WORK: succeeds({"n": 1})}, descriptions=descriptions
    )
    boot = WorkerBoot(node_name=name, capacity=capacity, backends={LEVEL: backend})
    with platform_scope():
        register(
            boot=boot.id,
            node_name=boot.node_name,
            lane=boot.lane,
            capacity=boot.capacity,
            levels=[LEVEL],
            catalogue=store_catalogue(backend.describe()),
        )
    return boot


def backend_of(boot: WorkerBoot) -> StubBackend:
    """The stub behind a machine."""
    backend = boot.backends[LEVEL]
    assert isinstance(backend, StubBackend)
    return backend


def resend_after(boot: WorkerBoot, seconds: float) -> None:
    """From now on the worker's loop sends again what no link has claimed for so long."""
    boot.clocks = replace(boot.clocks, renewal=seconds / 2, resend=seconds)


def let_lapse(boot: WorkerBoot) -> None:
    """The worker has not renewed its lease for too long."""
    with platform_scope():
        Worker.objects.filter(boot=boot.id).update(lease_until=Now() - timedelta(seconds=1))


def set_quota(tenant: TenantRef, max_running: int) -> None:
    """Set the number of the tenant's runs that may hold a slot."""
    with platform_scope():
        Quota.objects.filter(tenant_id=tenant.id).update(max_running=max_running)


def distrust(tenant: TenantRef) -> None:
    """Let the tenant's runs have the level `process`: `shared` is for trusted tenants."""
    with platform_scope():
        Tenant.objects.filter(pk=tenant.id).update(trusted=False)


def document(*keys: str, name: str = "flow", uses: str = WORK) -> dict[str, Any]:
    """A blueprint with these steps."""
    return {"name": name, "steps": [{"key": key, "uses": uses} for key in keys or ("one", "two")]}


def make_run(tenant: TenantRef, *keys: str, uses: str = WORK, **inputs: Any) -> UUID:
    """A run that waits for a slot; a worker has been registered before."""
    with tenant_scope(tenant):
        number = publish(document(*keys, uses=uses)).number
    run = submit(
        tenant,
        RunRequest(blueprint="flow", version=number, inputs=inputs, requested_by="tests", seed=7),
    ).execution
    return run.id


def start(
    tenant: TenantRef,
    boot: WorkerBoot,
    *steps: dict[str, Any],
    given: dict[str, Any] | None = None,
    **fields: Any,
) -> Placement:
    """A placed run of a blueprint with these steps, named s1, s2, … unless they say otherwise, and these fields."""
    numbered = [
        {"key": f"s{number}", "uses": WORK, **step} for number, step in enumerate(steps, start=1)
    ]
    with tenant_scope(tenant):
        number = publish({"name": "flow", "steps": numbered, **fields}).number
    run = submit(
        tenant,
        RunRequest(
            blueprint="flow", version=number, inputs=given or {}, requested_by="tests", seed=7
        ),
    ).execution
    return place(tenant, run.id, boot)


def record(result: StepResult, *, version: int = 0, **fields: Any) -> AttemptRecord:
    """Return the record of an attempt with this result, if its failure is the run's."""
    return AttemptRecord(
        path=result.step,
        attempt=result.attempt,
        version=version,
        output=dump(result.output).decode() if result.code is None else None,
        code=result.code or "",
        message=result.message,
        cause=result.cause or "",
        run_code=result.code or "",
        run_message=result.message,
        **fields,
    )


def place(tenant: TenantRef, execution_id: UUID, boot: WorkerBoot) -> Placement:
    """Give a waiting run a slot, as admission would."""
    with platform_scope():
        tickets = Ticket.objects.filter(execution_id=execution_id)
        deadline = Now() + timedelta(seconds=tickets.get().time_left)
        assert tickets.update(state=TicketState.PLACED, worker_id=boot.id, deadline=deadline)
        epoch = tickets.get().epoch
    return boot.placement(tenant.id, str(execution_id), epoch)


def make_placed(tenant: TenantRef, boot: WorkerBoot, *keys: str, uses: str = WORK) -> Placement:
    """A run that holds a slot on this machine; nothing of it is claimed yet."""
    return place(tenant, make_run(tenant, *keys, uses=uses), boot)


# --- looking
def run_of(tenant: TenantRef, execution_id: UUID) -> Execution:
    """The run's row as it is now."""
    with tenant_scope(tenant):
        return Execution.objects.get(pk=execution_id)


def step_of(tenant: TenantRef, execution_id: UUID, path: str) -> Step:
    """A step's row as it is now."""
    with tenant_scope(tenant):
        return Step.objects.get(execution_id=execution_id, path=path)


def steps_of(tenant: TenantRef, execution_id: UUID) -> dict[str, str]:
    """The states of the run's steps."""
    with tenant_scope(tenant):
        return dict(Step.objects.filter(execution_id=execution_id).values_list("path", "state"))


def events_of(tenant: TenantRef, execution_id: UUID) -> list[str]:
    """The kinds of the run's events; they are numbered without a gap."""
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution_id=execution_id).order_by("sequence")
        rows = list(found.values_list("sequence", "kind"))
        last = Execution.objects.values_list("last_event", flat=True).get(pk=execution_id)
    assert [sequence for sequence, _ in rows] == list(range(1, last + 1))
    return [kind for _, kind in rows]


def logs_of(tenant: TenantRef, execution_id: UUID) -> list[str]:
    """Return the log lines of the run's steps; they are numbered without a gap."""
    with tenant_scope(tenant):
        found = StepLog.objects.filter(execution_id=execution_id).order_by("number")
        rows = list(found.values_list("number", "message"))
        last = Execution.objects.values_list("last_log", flat=True).get(pk=execution_id)
    assert [number for number, _ in rows] == list(range(1, last + 1))
    return [message for _, message in rows]


def costs_of(tenant: TenantRef, execution_id: UUID) -> list[tuple[str, int, str, int]]:
    """Return the costs of the run's attempts: step, attempt, kind, amount."""
    with tenant_scope(tenant):
        found = CostRecord.objects.filter(execution_id=execution_id).order_by("id")
        return [(row.step, row.attempt, row.kind, int(row.amount)) for row in found]


def due_of(execution_id: UUID) -> Due | None:
    """Return the time at which the run is to be woken, if any."""
    with platform_scope():
        return Due.objects.filter(ref=execution_id).first()


def ticket_of(execution_id: UUID) -> Ticket | None:
    """The run's ticket, none once it has ended."""
    with platform_scope():
        return Ticket.objects.filter(execution_id=execution_id).first()


def held_by(boot: WorkerBoot) -> set[UUID]:
    """The runs that hold a slot on this machine."""
    with platform_scope():
        found = Ticket.objects.filter(worker_id=boot.id, state=TicketState.PLACED)
        return set(found.values_list("execution_id", flat=True))


def everything_of(tenant: TenantRef) -> dict[str, list[Any]]:
    """All rows that runs of this tenant have, to be compared with themselves later."""
    with tenant_scope(tenant):
        return {
            "runs": list(Execution.objects.order_by("id").values()),
            "steps": list(Step.objects.order_by("id").values()),
            "events": list(ExecutionEvent.objects.order_by("execution_id", "sequence").values()),
            "logs": list(StepLog.objects.order_by("execution_id", "number").values()),
            "costs": list(CostRecord.objects.order_by("id").values()),
            "monthly": list(MonthlyCost.objects.order_by("id").values()),
            "tickets": list(Ticket.objects.order_by("execution_id").values()),
            "approvals": list(Approval.objects.order_by("id").values()),
            "due": list(Due.objects.order_by("id").values()),
        }
