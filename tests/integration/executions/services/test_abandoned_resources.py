"""Giving up what cannot be revoked."""

import pytest

from executions.models import ResourceRecord
from executions.selectors.resource_records import unclosed_records
from executions.semantics.reasons import EndReason
from executions.services.abandoned_resources import abandon_leftover
from executions.transitions.hand_back import hand_back
from executions.transitions.ledger import commit_issue
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from foundation.errors import NotFound
from resources.credentials import Credential
from resources.ledger.models import IssuedCredential
from resources.placement import Placement
from tenants.models import AuditEntry
from tenants.roles import Role
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import make_placed
from tests.integration.resources.issuers.resource_requests import cache_request
from tests.integration.tenants.web import problem, program

ROLE = "iso_1_1_a"


@pytest.fixture
def left(acme: TenantRef, globex: TenantRef, boot: WorkerBoot) -> dict[str, Placement]:
    """In each tenant a placement that was issued a role of that name."""
    found = {}
    for tenant in (acme, globex):
        placement = found[tenant.schema] = make_placed(tenant, boot)
        request = cache_request(execution_id=placement.execution_id, definition="a")
        credential = Credential(kind="database.role", remote_id=ROLE, data={})
        with tenant_scope(tenant):
            assert commit_issue(placement, [(request, credential)])
    return found


def issued() -> list[int]:
    with platform_scope():
        return list(
            IssuedCredential.objects.order_by("tenant_id").values_list("tenant_id", flat=True)
        )


def test_what_is_given_up_is_forgotten_and_its_record_says_by_whom(
    acme: TenantRef, globex: TenantRef, left: dict[str, Placement]
) -> None:
    with pytest.raises(NotFound):
        abandon_leftover(acme, ROLE, actor="ann")  # its placement still has it
    with tenant_scope(acme):
        hand_back(left["acme"], PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    abandon_leftover(acme, ROLE, actor="ann")
    assert issued() == [globex.id]
    with tenant_scope(acme):
        record = ResourceRecord.objects.get()
        assert not unclosed_records().exists()
    assert (record.ended, record.error_code, record.error) == ("failed", "abandoned", "ann")
    assert record.error_text == "Given up by ann; it may still exist."
    with platform_scope():
        entry = AuditEntry.objects.get(action="resource.abandon")
    assert (entry.actor, entry.subject, entry.tenant_id) == ("ann", ROLE, acme.id)
    with tenant_scope(globex):
        assert ResourceRecord.objects.get().ended == ""


def test_what_is_not_there_is_not_found(acme: TenantRef, globex: TenantRef) -> None:
    for nonsense in ("nothing", "'; drop table x", "../x"):
        with pytest.raises(NotFound, match="executions unclean"):
            abandon_leftover(acme, nonsense, actor="ann")


def test_over_http_an_administrator_may(
    acme: TenantRef, globex: TenantRef, left: dict[str, Placement]
) -> None:
    with tenant_scope(acme):
        hand_back(left["acme"], PlacementEnd(reason=EndReason.WORKER_STOPPED, lost=True))
    path, body = "/api/v1/executions/unclean/abandon", {"resource_id": ROLE}
    author = program(acme, role=Role.AUTHOR)
    problem(author.post(path, body, content_type="application/json"), 403, "permission_denied")
    admin = program(acme, role=Role.ADMIN)
    problem(admin.post(path, {}, content_type="application/json"), 400, "invalid_input")
    assert admin.post(path, body, content_type="application/json").status_code == 204
    problem(admin.post(path, body, content_type="application/json"), 404, "not_found")
    assert issued() == [globex.id]
