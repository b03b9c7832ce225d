"""The journal: what a step says is written once, also when the answer to the first try is lost."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from executions.semantics.records import Line
from executions.transitions.claim import claim_step
from executions.transitions.journal import write_journal
from executions.worker.machine import Machine
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, logs_of, make_placed
from tests.integration.executions.statements import lose_answers

pytestmark = pytest.mark.usefixtures("neighbour")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def lines(*messages: str, after: int = 0) -> list[Line]:
    return [
        Line(at=NOON + timedelta(seconds=after + number), level="info", message=message)
        for number, message in enumerate(messages)
    ]


def test_a_lost_answer_does_not_write_twice(
    acme: TenantRef,
    machine: Machine,
    superuser: "psycopg.Connection[tuple[object, ...]]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = make_placed(acme, machine)
    lost = lose_answers(monkeypatch, superuser, "step.log")
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
        write_journal(placement, "one", 1, lines=lines("a", "b"), fraction=None, text="")
        write_journal(placement, "one", 1, lines=lines("c", after=5), fraction=None, text="")
    assert lost
    assert logs_of(acme, placement.execution_id) == ["a", "b", "c"]
    assert events_of(acme, placement.execution_id)[3:] == ["step.log", "step.log"]
