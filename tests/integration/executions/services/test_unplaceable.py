"""Runs whose nodes no living worker offers: they wait with a reason, and not for ever."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.utils import timezone

from executions.placement.admission import admit
from executions.placement.models import Catalogue, Ticket, Worker
from executions.services.publishing import catalogue_nodes
from executions.services.unplaceable import settle_unplaceable
from executions.states import ExecutionState
from executions.worker.boot import WorkerBoot
from isolane.protocol import NodeDescription
from isolane.results import Code
from resources.runtimes.stub import succeeds
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import (
    backend_of,
    let_lapse,
    make_boot,
    make_run,
    run_of,
    steps_of,
    ticket_of,
)


def replace_workers(old: WorkerBoot) -> WorkerBoot:
    """The only worker goes, and one with other nodes comes."""
    let_lapse(old)
    return make_boot(script={"other": succeeds(None)}, name="w2@test")


def let_time_pass(execution_id: UUID) -> None:
    past = timezone.now() - settings.CATALOGUE_PATIENCE - timedelta(minutes=2)
    with platform_scope():
        Ticket.objects.filter(execution_id=execution_id).update(waiting_since=past)
        Catalogue.objects.update(offered_at=past)


def test_a_stranded_run_says_why_it_waits_and_goes_on_when_its_nodes_are_back(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    mine, other = make_run(acme), make_run(globex)
    replace_workers(boot)
    assert admit() == []
    settle_unplaceable()
    for tenant, run_id in ((acme, mine), (globex, other)):
        run = run_of(tenant, run_id)
        assert run.state == ExecutionState.QUEUED
        assert ticket_catalogue(run_id) in run.message
    make_boot(name="w3@test")
    assert {placed.execution_id for placed in admit()} == {mine, other}


def test_runs_go_on_with_a_worker_that_offers_the_same_contracts(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    """A new version describes its nodes in other words, and may offer more of them."""
    runs = {make_run(acme), make_run(globex)}
    for run_id in runs:
        let_time_pass(run_id)  # the upgrade took long
    let_lapse(boot)
    described = {
        name: NodeDescription(
            name=name,
            parameters=node.parameters,
            idempotent=False,
            deterministic=False,
            summary="New.",
        )
        for name, node in catalogue_of(boot).items()
    }
    newer = make_boot(
        script={"work": succeeds(None), "more": succeeds(None)},
        descriptions=described,
        name="w2@test",
    )
    assert admit() == []
    settle_unplaceable()
    assert {(one.execution_id, one.boot) for one in admit()} == {(run, newer.id) for run in runs}


def test_runs_are_bound_to_workers_that_can_take_them(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    """The newest worker covers the nodes, too, but offers another level, drains, or is not reachable."""
    runs = {make_run(acme), make_run(globex)}
    let_lapse(boot)
    able = make_boot(script={"work": succeeds(None), "a": succeeds(None)}, name="w2@test")
    states: list[dict[str, Any]] = [
        {"isolation_levels": ["docker"]},
        {"draining": True},
        {"reachable": False},
    ]
    for number, state in enumerate(states):
        script = {"work": succeeds(None), f"b{number}": succeeds(None)}
        newer = make_boot(script=script, name=f"w{number + 3}@test")
        with platform_scope():
            Worker.objects.filter(boot=newer.id).update(**state)
    settle_unplaceable()
    assert {(one.execution_id, one.boot) for one in admit()} == {(run, able.id) for run in runs}


def test_a_node_with_other_parameters_is_another(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    runs = [(tenant, make_run(tenant)) for tenant in (acme, globex)]
    let_lapse(boot)
    changed = NodeDescription(
        name="work", parameters={"required": ["x"]}, idempotent=False, deterministic=False
    )
    make_boot(script={"work": succeeds(None)}, descriptions={"work": changed}, name="w2@test")
    settle_unplaceable()
    assert admit() == []
    for tenant, run_id in runs:
        assert ticket_catalogue(run_id) in run_of(tenant, run_id).message


def catalogue_of(boot: WorkerBoot) -> dict[str, NodeDescription]:
    return {node.name: node for node in backend_of(boot).describe().nodes}


def ticket_catalogue(execution_id: UUID) -> str:
    ticket = ticket_of(execution_id)
    assert ticket is not None
    return str(ticket.catalogue_id)[:12]


def test_it_does_not_wait_for_ever(acme: TenantRef, globex: TenantRef, boot: WorkerBoot) -> None:
    old, young = make_run(acme), make_run(globex)
    replace_workers(boot)
    let_time_pass(old)
    settle_unplaceable()
    run = run_of(acme, old)
    assert (run.state, run.code) == (ExecutionState.FAILED, Code.CATALOGUE_MISSING)
    assert steps_of(acme, old) == {"one": "skipped", "two": "skipped"}
    assert ticket_of(old) is None
    assert run_of(globex, young).state == ExecutionState.QUEUED


def test_how_long_is_the_operators_to_say(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [(tenant, make_run(tenant)) for tenant in (acme, globex)]
    replace_workers(boot)
    for _, run_id in runs:
        let_time_pass(run_id)
    monkeypatch.setattr(settings, "CATALOGUE_PATIENCE", timedelta(days=7))
    settle_unplaceable()
    for tenant, run_id in runs:
        assert run_of(tenant, run_id).state == ExecutionState.QUEUED


def test_the_hour_counts_from_when_its_nodes_were_last_offered(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    runs = [(tenant, make_run(tenant)) for tenant in (acme, globex)]
    for _, run_id in runs:
        let_time_pass(run_id)
    settle_unplaceable()  # its worker lives: noted
    replace_workers(boot)
    settle_unplaceable()
    for tenant, run_id in runs:
        assert run_of(tenant, run_id).state == ExecutionState.QUEUED


def test_a_blueprint_is_checked_against_what_the_living_workers_offer(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    second = replace_workers(boot)
    let_lapse(second)
    make_boot(name="w3@test")  # the first catalogue again, stored before the second
    for tenant in (acme, globex):
        with tenant_scope(tenant):
            assert set(catalogue_nodes()) == {"work"}
