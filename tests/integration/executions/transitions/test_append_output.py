"""The journal: what a step says is written once, also when the answer to the first try is lost."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from executions.semantics.attempt_record import LogLine
from executions.transitions.append_output import append_output
from executions.transitions.claim import claim_step
from executions.worker.boot import WorkerBoot
from tenants.scope import TenantRef, tenant_scope
from tests.factories import events_of, logs_of, make_placed
from tests.integration.executions.statements import lose_answers

pytestmark = pytest.mark.usefixtures("neighbour")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def lines(*messages: str, after: int = 0) -> list[LogLine]:
    return [
        LogLine(at=NOON + timedelta(seconds=after + number), level="info", message=message)
        for number, message in enumerate(messages)
    ]


def test_a_lost_answer_does_not_write_twice(
    acme: TenantRef,
    boot: WorkerBoot,
    superuser: "psycopg.Connection[tuple[object, ...]]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = make_placed(acme, boot)
    lost = lose_answers(monkeypatch, superuser, "append_output")
    with tenant_scope(acme):
        claim_step(placement, "one", worker="w1@test")
        append_output(placement, "one", 1, lines=lines("a", "b"), fraction=None, text="")
        append_output(placement, "one", 1, lines=lines("c", after=5), fraction=None, text="")
    assert lost
    assert logs_of(acme, placement.execution_id) == ["a", "b", "c"]
    assert events_of(acme, placement.execution_id)[3:] == ["step.log", "step.log"]
