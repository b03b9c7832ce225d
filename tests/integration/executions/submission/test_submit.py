"""Submitting: run, steps, event and ticket together, or nothing at all."""

import json
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError

from executions.models import Execution, Step
from executions.models.sealing import unseal
from executions.placement.models import Worker
from executions.placement.registry import NoWorkerYet
from executions.services.publishing import publish
from executions.states import ExecutionState, TicketState
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from foundation.errors import InvalidInput, NotFound
from resources.isolation_choice import IsolationReason, IsolationUnavailable
from tenants.isolation import Isolation
from tenants.models import Tenant
from tenants.scope import TenantNotActive, TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import update_tenant
from tenants.statuses import TenantStatus
from tests.factories import (
    document,
    events_of,
    everything_of,
    make_run,
    run_of,
    steps_of,
    ticket_of,
)
from tests.integration.executions.statements import lose_answers

Server = psycopg.Connection[tuple[object, ...]]
TABLES = ("runs", "steps", "events", "logs", "costs", "monthly", "tickets", "approvals", "due")
NOTHING: dict[str, list[Any]] = {name: [] for name in TABLES}
DEEP = json.loads("[" * 700 + "]" * 700)


@pytest.fixture
def flow(acme: TenantRef, boot: WorkerBoot) -> None:
    """acme has a blueprint."""
    inputs = {"required": ["id"], "properties": {"id": {"type": "integer"}}}
    with tenant_scope(acme):
        publish({**document(), "inputs": inputs})


def submit_flow(tenant: TenantRef, **changes: Any) -> Execution:
    given = {"blueprint": "flow", "inputs": {"id": 7}, "requested_by": "ann", **changes}
    return submit(tenant, RunRequest(**given)).execution


@pytest.mark.usefixtures("neighbour", "flow")
def test_run_steps_event_and_ticket_are_written(acme: TenantRef, boot: WorkerBoot) -> None:
    run = run_of(acme, submit_flow(acme, seed=42).id)
    assert (run.state, run.next_step, run.inputs) == (ExecutionState.QUEUED, "one", {"id": 7})
    assert (run.seed, run.requested_by, run.isolation) == (42, "ann", "shared")
    assert steps_of(acme, run.id) == {"one": "pending", "two": "pending"}
    with tenant_scope(acme):
        positions = list(Step.objects.order_by("position").values_list("position", "path", "uses"))
    assert positions == [(0, "one", "work"), (1, "two", "work")]
    assert events_of(acme, run.id) == ["execution.queued"]
    ticket = ticket_of(run.id)
    assert ticket is not None
    assert (ticket.tenant_id, ticket.state, ticket.epoch) == (acme.id, TicketState.WAITING, 1)
    assert (ticket.isolation, ticket.catalogue_id) == ("shared", run.catalogue)


@pytest.mark.usefixtures("neighbour", "flow")
@pytest.mark.parametrize(
    "table", ["acme.executions_step", "acme.executions_executionevent", "public.placement_ticket"]
)
def test_if_one_of_them_fails_nothing_is_left(
    acme: TenantRef, superuser: Server, table: str
) -> None:
    superuser.execute(f"ALTER TABLE {table} ADD CONSTRAINT by_the_test CHECK (false) NOT VALID")
    try:
        with pytest.raises(DatabaseError, match="by_the_test"):
            submit_flow(acme)
    finally:
        superuser.execute(f"ALTER TABLE {table} DROP CONSTRAINT by_the_test")
    assert everything_of(acme) == NOTHING


@pytest.mark.usefixtures("neighbour", "flow")
def test_the_newest_version_unless_one_is_named(acme: TenantRef) -> None:
    with tenant_scope(acme):
        publish(document("three"))
    assert run_of(acme, submit_flow(acme).id).next_step == "three"
    assert run_of(acme, submit_flow(acme, version=1).id).next_step == "one"


@pytest.mark.usefixtures("neighbour", "flow")
@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"blueprint": "none"}, NotFound, "blueprint"),
        ({"version": 9}, NotFound, "blueprint"),
        ({"inputs": {"id": "x"}}, InvalidInput, "inputs.id"),
        ({"inputs": {"id": 1, "text": "\0"}}, InvalidInput, "inputs"),
        ({"inputs": {"id": 1, "deep": DEEP}}, InvalidInput, "inputs"),
        ({"inputs": {"id": 1, "text": "x" * 2**20}}, InvalidInput, "inputs"),
        ({"seed": 2**63}, InvalidInput, "seed"),
        ({"seed": -1}, InvalidInput, "seed"),
    ],
)
def test_a_refusal_names_the_field_and_writes_nothing(
    acme: TenantRef, changes: dict[str, Any], error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as refused:
        submit_flow(acme, **changes)
    assert refused.value.field == field
    assert everything_of(acme) == NOTHING


@pytest.mark.usefixtures("flow")
def test_another_tenants_blueprint_is_not_there(acme: TenantRef, globex: TenantRef) -> None:
    with pytest.raises(NotFound):
        submit_flow(globex)
    assert everything_of(acme) == everything_of(globex) == NOTHING


@pytest.mark.usefixtures("neighbour", "flow")
def test_a_tenant_that_is_not_trusted_does_not_share(acme: TenantRef) -> None:
    with platform_scope():
        Tenant.objects.filter(pk=acme.id).update(trusted=False)
    with pytest.raises(IsolationUnavailable, match="process or stricter"):
        submit_flow(acme)
    assert everything_of(acme) == NOTHING


@pytest.mark.usefixtures("flow")
def test_a_changed_requirement_counts_for_the_next_run_of_that_tenant(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    with platform_scope():
        Worker.objects.filter(boot=boot.id).update(isolation_levels=["shared", "process"])
    with tenant_scope(globex):
        publish(document())
    runs = [submit_flow(acme).id]
    for level in (Isolation.PROCESS, Isolation.SHARED):
        update_tenant(schema="acme", required_isolation=level, actor="tests")
        runs.append(submit_flow(acme).id)
        assert run_of(globex, submit_flow(globex).id).isolation == "shared"
    # The run that waits keeps the level that it was submitted with.
    assert [run_of(acme, run).isolation for run in runs] == ["shared", "process", "shared"]
    tickets = [ticket_of(run) for run in runs]
    assert [ticket and ticket.isolation for ticket in tickets] == ["shared", "process", "shared"]


@pytest.mark.usefixtures("neighbour", "flow")
def test_a_suspended_tenant_submits_nothing(acme: TenantRef) -> None:
    idle = TenantRef(id=acme.id, schema=acme.schema, status=TenantStatus.SUSPENDED)
    with pytest.raises(TenantNotActive):
        submit_flow(idle)
    assert everything_of(acme) == NOTHING


def test_before_the_first_worker_nothing_can_be_submitted(
    acme: TenantRef, globex: TenantRef
) -> None:
    with pytest.raises(NoWorkerYet):
        submit_flow(acme)
    assert everything_of(acme) == everything_of(globex) == NOTHING


@pytest.mark.usefixtures("flow")
def test_while_no_worker_lives_runs_wait_with_the_last_catalogue(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, superuser: Server
) -> None:
    superuser.execute("DELETE FROM placement_worker")
    for tenant in (acme, globex):
        ticket = ticket_of(make_run(tenant))
        assert ticket is not None
        assert ticket.state == TicketState.WAITING


# --- what a blueprint says of its runs
def publish_and_submit(
    tenant: TenantRef, *, given: dict[str, Any] | None = None, **fields: Any
) -> Execution:
    with tenant_scope(tenant):
        publish({**document(), **fields})
    return run_of(tenant, submit_flow(tenant, inputs=given or {}).id)


@pytest.mark.usefixtures("neighbour")
def test_labels_express_and_the_time_of_a_run(acme: TenantRef, boot: WorkerBoot) -> None:
    run = publish_and_submit(acme, labels={"team": "a"}, express=True, timeout="90s")
    assert (run.labels, run.express) == ({"team": "a"}, True)
    ticket = ticket_of(run.id)
    assert ticket is not None
    assert (ticket.time_left, ticket.deadline) == (90, None)
    plain = publish_and_submit(acme)
    assert (plain.labels, plain.express) == ({}, False)
    assert getattr(ticket_of(plain.id), "time_left", None) == 1800


@pytest.mark.usefixtures("neighbour")
def test_the_isolation_that_a_blueprint_asks_for(acme: TenantRef, boot: WorkerBoot) -> None:
    run = publish_and_submit(acme, isolation="shared")
    assert (run.isolation, run.isolation_reason) == ("shared", IsolationReason.TENANT_REQUIRES)
    with platform_scope():
        Worker.objects.update(isolation_levels=["shared", "process", "docker"])
    run = publish_and_submit(acme, isolation="docker")
    assert (run.isolation, run.isolation_reason) == ("docker", IsolationReason.BLUEPRINT_REQUESTS)
    assert getattr(ticket_of(run.id), "isolation", None) == "docker"


@pytest.mark.usefixtures("neighbour")
def test_an_isolation_that_nobody_offers_is_refused(acme: TenantRef, boot: WorkerBoot) -> None:
    with pytest.raises(
        IsolationUnavailable, match=r"isolation kubernetes or stricter \(the blueprint asks for it"
    ):
        publish_and_submit(acme, isolation="kubernetes")
    assert everything_of(acme) == NOTHING


@pytest.mark.usefixtures("neighbour")
def test_sensitive_inputs_are_sealed_and_shown_masked(acme: TenantRef, boot: WorkerBoot) -> None:
    schema = {"properties": {"password": {"type": "string", "sensitive": True}}}
    run = publish_and_submit(acme, given={"password": "hunter2", "id": 1}, inputs=schema)
    assert run.inputs == {"password": "***", "id": 1}
    assert unseal(run.id, bytes(run.sealed_inputs or b"")) == {"password": "hunter2", "id": 1}
    without = publish_and_submit(acme, given={"id": 1}, inputs=schema)
    assert (without.inputs, without.sealed_inputs) == ({"id": 1}, None)


# --- a submission whose answer was lost
@pytest.mark.usefixtures("neighbour", "flow")
@pytest.mark.parametrize("key", ["", "order-1"])
def test_a_submission_whose_answer_was_lost_is_written_once(
    acme: TenantRef, superuser: Server, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    lost = lose_answers(monkeypatch, superuser, "submit")
    run = submit_flow(acme, idempotency_key=key)
    assert lost
    assert [row["id"] for row in everything_of(acme)["runs"]] == [run.id]
    assert events_of(acme, run.id) == ["execution.queued"]
