"""The migration to 0.2.0: sentences that older versions stored become codes, in one tenant at a time."""

from importlib import import_module
from uuid import UUID

import psycopg
import pytest

from executions.explain.events import describe_event
from executions.models import Execution, ExecutionEvent
from executions.semantics.reasons import EndReason, QueueReason
from resources.isolation_choice import IsolationReason
from tenants.scope import TenantRef, tenant_scope
from tests.factories import make_boot, make_run

Server = psycopg.Connection[tuple[object, ...]]
codes = import_module("executions.migrations.0008_codes")
ISOLATION = {
    "the tenant requires process": IsolationReason.TENANT_REQUIRES,
    "the blueprint asks for docker": IsolationReason.BLUEPRINT_REQUESTS,
    "the tenant is not trusted, and shared is for trusted tenants": IsolationReason.TENANT_UNTRUSTED,
}


def run_with_old_events(tenant: TenantRef, superuser: Server, sentence: str) -> UUID:
    """A run as 0.1.0 wrote it: an event for each sentence, and one without a reason."""
    run = make_run(tenant)
    superuser.execute(f"SET search_path = {tenant.schema}, public")
    superuser.execute(
        "UPDATE executions_execution SET isolation_reason = %s WHERE id = %s", [sentence, run]
    )
    for number, reason in enumerate([*codes.REASONS, "approved"], start=10):
        superuser.execute(
            "INSERT INTO executions_executionevent (execution_id, sequence, at, kind, step, data)"
            " VALUES (%s, %s, now(), 'placement.lost', '', jsonb_build_object('epoch', 1, 'reason', %s::text))",
            [run, number, reason],
        )
    return run


def reasons(tenant: TenantRef, run: UUID) -> list[str]:
    with tenant_scope(tenant):
        events = ExecutionEvent.objects.filter(execution_id=run, sequence__gte=10)
        return [event.data["reason"] for event in events.order_by("sequence")]


def isolation_reason(tenant: TenantRef, run: UUID) -> str:
    with tenant_scope(tenant):
        return Execution.objects.get(pk=run).isolation_reason


@pytest.mark.parametrize("sentence", ISOLATION)
def test_sentences_become_codes_in_the_tenant_that_is_migrated(
    acme: TenantRef, globex: TenantRef, superuser: Server, sentence: str
) -> None:
    make_boot()
    theirs = run_with_old_events(globex, superuser, sentence)
    ours = run_with_old_events(acme, superuser, sentence)

    for statement in (codes.EVENTS, codes.RUNS) * 2:  # a second time changes nothing
        superuser.execute(statement)

    assert reasons(acme, ours) == [*codes.REASONS.values(), "approved"]
    assert isolation_reason(acme, ours) == ISOLATION[sentence]
    assert reasons(globex, theirs) == [*codes.REASONS, "approved"]
    assert isolation_reason(globex, theirs) == sentence


def test_every_code_is_known_and_old_events_can_be_read_before_they_are_migrated() -> None:
    assert set(codes.REASONS.values()) <= {*EndReason, *QueueReason}
    assert set(codes.ISOLATION_REASONS.values()) == set(IsolationReason)
    for sentence, code in codes.REASONS.items():
        assert sentence in describe_event("placement.ended", "", {"reason": sentence})
        assert code not in describe_event("placement.ended", "", {"reason": code})
