"""Connections are events of their run: each written once, in order, and never against the fence."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import transaction
from django.db.models import F

from executions.models import Execution, ExecutionEvent
from executions.semantics.reasons import EndReason
from executions.transitions.append_connections import CONNECTION_KINDS, append_connections
from executions.transitions.restart import restart
from resources.gate.connection_log import (
    MAX_CONNECTIONS,
    MAX_REFUSALS,
    NumberedRecord,
    OmittedConnections,
)
from resources.gate.record import ConnectionReason
from resources.placement import Placement
from tenants.scope import TenantRef, tenant_scope
from tests.connections import a_connection, a_refusal
from tests.factories import events_of, everything_of
from tests.integration.executions.locks import wait_until_blocked
from tests.integration.executions.statements import lose_answers
from tests.integration.executions.threads import in_thread
from tests.integration.executions.transitions.runs import close, time_out

pytestmark = pytest.mark.usefixtures("neighbour")
Server = psycopg.Connection[tuple[object, ...]]
Told = tuple[str, str, dict[str, Any]]


def numbered(*hosts: str, first: int = 1) -> list[NumberedRecord]:
    return [NumberedRecord(n, a_refusal(host)) for n, host in enumerate(hosts, start=first)]


def append(tenant: TenantRef, placement: Placement, records: list[NumberedRecord]) -> bool:
    with tenant_scope(tenant):
        return append_connections(placement, records)


def told(tenant: TenantRef, placement: Placement) -> list[Told]:
    events_of(tenant, placement.execution_id)  # numbered without a gap
    with tenant_scope(tenant):
        found = ExecutionEvent.objects.filter(execution_id=placement.execution_id)
        rows = found.filter(kind__in=CONNECTION_KINDS).order_by("sequence")
        return list(rows.values_list("kind", "step", "data"))


def hosts(tenant: TenantRef, placement: Placement) -> list[tuple[int, str]]:
    return [(data["number"], data["host"]) for _, _, data in told(tenant, placement)]


def test_each_is_an_event_with_its_data(acme: TenantRef, claimed: Placement) -> None:
    ended = a_connection(
        definition="billing-api",
        sent=512,
        received=5_000_000_000,
        seconds=1.2344,
        reason=ConnectionReason.IDLE,
    )
    lookup = a_refusal(port=0, seconds=0.5)
    omitted = OmittedConnections(closed=1, refused=57, sent=9, received=8)
    records = [NumberedRecord(1, ended), NumberedRecord(2, lookup), NumberedRecord(3, omitted)]
    assert append(acme, claimed, records)
    assert told(acme, claimed) == [
        (
            "connection.closed",
            "",
            {
                "epoch": 1, "number": 1, "host": "api.example.com", "port": 443, "definition": "billing-api",
                "sent": 512, "received": 5_000_000_000, "ms": 1234, "reason": "idle",
            },
        ),
        (
            "connection.refused",
            "",
            {
                "epoch": 1, "number": 2, "host": "evil.example.com", "port": 0, "ms": 500,
                "reason": "not_declared",
            },
        ),
        (
            "connection.omitted",
            "",
            {"epoch": 1, "number": 3, "closed": 1, "refused": 57, "sent": 9, "received": 8},
        ),
    ]  # fmt: skip


def test_as_many_as_a_placement_may_have_are_one_statement(
    acme: TenantRef, claimed: Placement
) -> None:
    names = [f"{'ü' * 250}{n}" for n in range(1, MAX_CONNECTIONS + MAX_REFUSALS + 1)]
    assert append(acme, claimed, numbered(*names))
    assert hosts(acme, claimed) == list(enumerate(names, start=1))


# --- each once
def test_a_lost_answer_does_not_write_twice(
    acme: TenantRef, claimed: Placement, superuser: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = lose_answers(monkeypatch, superuser, "append_connections")
    assert append(acme, claimed, numbered("a", "b"))
    assert lost
    assert hosts(acme, claimed) == [(1, "a"), (2, "b")]


def test_of_records_sent_again_with_newer_ones_only_these_are_written(
    acme: TenantRef, claimed: Placement
) -> None:
    assert append(acme, claimed, numbered("a", "b"))
    before = everything_of(acme)
    assert append(acme, claimed, numbered("a", "b"))
    assert everything_of(acme) == before
    assert append(acme, claimed, numbered("b", "c", first=2))
    assert hosts(acme, claimed) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_try_that_is_still_under_way_does_not_write_twice(
    acme: TenantRef, claimed: Placement, superuser: Server
) -> None:
    """Its connection is lost while it waits for a lock: neither try sees what the other will write."""
    with tenant_scope(acme), transaction.atomic():
        Execution.objects.filter(pk=claimed.execution_id).update(losses=F("losses"))
        tries = [in_thread(lambda: append(acme, claimed, numbered("a", "b"))) for _ in range(2)]
        wait_until_blocked(superuser, statements=2)
    assert [one.result(timeout=20) for one in tries] == [True, True]
    assert hosts(acme, claimed) == [(1, "a"), (2, "b")]


def test_each_placement_has_its_own_numbers(acme: TenantRef, claimed: Placement) -> None:
    assert append(acme, claimed, numbered("a", "b"))
    with tenant_scope(acme):
        assert restart(claimed, reason=EndReason.RUNTIME_ENDED) == 2
    assert append(acme, replace(claimed, epoch=2), numbered("c"))
    assert hosts(acme, claimed) == [(1, "a"), (2, "b"), (1, "c")]
    assert [data["epoch"] for _, _, data in told(acme, claimed)] == [1, 1, 2]


# --- the fence
def test_a_run_with_an_outcome_may_still_be_told_of_until_it_is_closed(
    acme: TenantRef, claimed: Placement
) -> None:
    assert time_out(acme, claimed)
    assert append(acme, claimed, numbered("a"))
    close(acme, claimed)
    before = everything_of(acme)
    assert not append(acme, claimed, numbered("b", first=2))
    assert everything_of(acme) == before
    assert events_of(acme, claimed.execution_id)[-2:] == [
        "connection.refused",
        "execution.timed_out",
    ]


def test_a_placement_that_is_over_writes_nothing(
    acme: TenantRef, globex: TenantRef, claimed: Placement
) -> None:
    with tenant_scope(acme):
        restart(claimed, reason=EndReason.RUNTIME_ENDED)
    before = everything_of(acme)
    assert not append(acme, claimed, numbered("a"))
    assert not append(globex, replace(claimed, epoch=2), numbered("a"))
    assert everything_of(acme) == before
