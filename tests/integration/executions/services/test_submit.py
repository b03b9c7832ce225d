"""Submitting: run, steps, event and ticket together, or nothing at all."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection

from executions.models import Execution, Step
from executions.placement.workers import NoWorkerYet
from executions.services.blueprints import publish
from executions.services.executions import submit
from executions.states import ExecutionState, TicketState
from executions.worker.machine import Machine
from orchestrator.core.errors import InvalidInput, NotFound
from resources.levels import IsolationUnavailable
from tenants.models import Tenant
from tenants.scope import TenantNotActive, TenantRef, platform_scope, tenant_scope
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

Server = psycopg.Connection[tuple[object, ...]]
NOTHING: dict[str, list[Any]] = {"runs": [], "steps": [], "events": [], "tickets": []}
DEEP = json.loads("[" * 700 + "]" * 700)


@pytest.fixture
def flow(acme: TenantRef, machine: Machine) -> None:
    """acme has a blueprint."""
    inputs = {"required": ["id"], "properties": {"id": {"type": "integer"}}}
    with tenant_scope(acme):
        publish({**document(), "inputs": inputs})


def submit_flow(tenant: TenantRef, **changes: Any) -> Execution:
    given = {"blueprint": "flow", "inputs": {"id": 7}, "requested_by": "ann", **changes}
    return submit(tenant=tenant, **given)


@pytest.mark.usefixtures("neighbour", "flow")
def test_run_steps_event_and_ticket_are_written(acme: TenantRef, machine: Machine) -> None:
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
@pytest.mark.parametrize("table", ["executions_step", "executions_executionevent", "ticket"])
def test_if_one_of_them_fails_nothing_is_left(acme: TenantRef, table: str) -> None:
    def refuse(execute: Callable[..., object], sql: str, *args: object) -> object:
        if sql.startswith("INSERT") and table in sql:
            raise DatabaseError("refused by the test")
        return execute(sql, *args)

    with connection.execute_wrapper(refuse), pytest.raises(DatabaseError, match="by the test"):
        submit_flow(acme)
    assert everything_of(acme) == NOTHING


@pytest.mark.usefixtures("neighbour", "flow")
def test_the_newest_version_unless_one_is_named(acme: TenantRef) -> None:
    with tenant_scope(acme):
        publish(document("three"))
    assert submit_flow(acme).next_step == "three"
    assert submit_flow(acme, version=1).next_step == "one"


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
    acme: TenantRef, globex: TenantRef, machine: Machine, superuser: Server
) -> None:
    superuser.execute("DELETE FROM placement_worker")
    for tenant in (acme, globex):
        ticket = ticket_of(make_run(tenant))
        assert ticket is not None
        assert ticket.state == TicketState.WAITING
