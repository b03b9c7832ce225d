"""The ledger: credentials are committed under the fence, found when their placement is over, given up by a person."""

from dataclasses import replace
from importlib import import_module

import pytest
from django.db import connection
from django.utils import timezone

from executions.models import ResourceRecord
from executions.models.sealing import unseal
from executions.semantics.reasons import EndReason
from executions.transitions.cancel import cancel
from executions.transitions.hand_back import hand_back
from executions.transitions.ledger import (
    abandon,
    commit_issue,
    due_for_sweep,
    mark_not_swept,
    mark_swept,
)
from executions.transitions.placement_end import PlacementEnd
from executions.worker.boot import WorkerBoot
from resources.credentials import Credential
from resources.ledger.models import IssuedCredential
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import make_placed
from tests.integration.resources.issuers.resource_requests import cache_request

pytestmark = pytest.mark.usefixtures("neighbour")
ROLE = "iso_1_1_a"


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return make_placed(acme, boot)


def commit(tenant: TenantRef, placement: Placement, *remote_ids: str) -> bool:
    request = cache_request(execution_id=placement.execution_id)
    planned = [
        (request, Credential(kind="cache.user", remote_id=remote_id, data={"key": "k"}))
        for remote_id in remote_ids
    ]
    with tenant_scope(tenant):
        return commit_issue(placement, planned)


def end(tenant: TenantRef, placement: Placement) -> None:
    with tenant_scope(tenant):
        assert hand_back(placement, PlacementEnd(reason=EndReason.WORKER_LOST, lost=True))


def due() -> list[IssuedCredential]:
    with platform_scope():
        return due_for_sweep()


def record(tenant: TenantRef) -> ResourceRecord:
    with tenant_scope(tenant):
        return ResourceRecord.objects.get()


def test_credentials_are_committed_with_their_records(
    acme: TenantRef, placement: Placement
) -> None:
    assert commit(acme, placement, ROLE)
    assert commit(acme, placement, ROLE)  # repeated, it changes nothing
    found = record(acme)
    assert (found.resource_id, found.type, found.name) == (ROLE, "cache.user", "handle")
    assert (found.ended, found.error_code, found.error) == ("", "", "")
    with platform_scope():
        row = IssuedCredential.objects.get()
    assert (row.remote_id, row.resource_type, row.definition) == (ROLE, "cache", "notes")
    assert unseal(placement.execution_id, bytes(row.data)) == {"key": "k"}


def test_an_old_epoch_and_a_cancelled_run_commit_nothing(
    acme: TenantRef, placement: Placement
) -> None:
    assert not commit(acme, replace(placement, epoch=2), ROLE)
    with tenant_scope(acme):
        cancel(placement.execution_id, actor="tests", message="")
    assert not commit(acme, placement, ROLE)
    with platform_scope():
        assert not IssuedCredential.objects.exists()


def test_only_credentials_of_ended_placements_are_due_the_last_first(
    acme: TenantRef, placement: Placement
) -> None:
    assert commit(acme, placement, "first", "second")
    assert due() == []
    end(acme, placement)
    assert [row.remote_id for row in due()] == ["second", "first"]
    assert {(row.tenant_id, row.epoch, row.swept) for row in due()} == {(acme.id, 1, False)}


def test_a_failed_sweep_is_recorded_and_delays_the_others_of_its_definition(
    acme: TenantRef, placement: Placement
) -> None:
    assert commit(acme, placement, "first", "second")
    end(acme, placement)
    row, _ = due()
    with tenant_scope(acme):
        mark_not_swept(row, "no route")
        kept = ResourceRecord.objects.get(resource_id="second")
    assert (kept.ended, kept.error_code, kept.error) == ("", "", "no route")
    assert due() == []


def test_a_swept_credential_stays_for_a_second_revocation(
    acme: TenantRef, placement: Placement
) -> None:
    assert commit(acme, placement, ROLE)
    end(acme, placement)
    (row,) = due()
    with tenant_scope(acme):
        assert mark_swept(row, again_s=0)
        assert not mark_swept(row, again_s=0)
    assert record(acme).ended == "swept"
    (again,) = due()
    assert again.swept
    with tenant_scope(acme):
        assert mark_swept(again, again_s=0)
    assert due() == []


def test_what_is_given_up_leaves_the_ledger_with_a_code_in_its_record(
    acme: TenantRef, globex: TenantRef, placement: Placement
) -> None:
    assert commit(acme, placement, ROLE)
    with tenant_scope(acme):
        assert not abandon(ROLE, actor="ann")  # its placement still uses it
    end(acme, placement)
    with tenant_scope(globex):
        assert not abandon(ROLE, actor="ann")
    with tenant_scope(acme):
        assert abandon(ROLE, actor="ann")
        assert not abandon(ROLE, actor="ann")
    found = record(acme)
    assert (found.ended, found.error_code, found.error) == ("failed", "abandoned", "ann")
    assert due() == []


def test_sentences_of_the_version_before_become_codes_and_are_shown_as_they_were(
    acme: TenantRef, placement: Placement
) -> None:
    sentences = [
        "not issued",
        "the worker's log says why",
        "Given up by ann; bob; it may still exist.",
        "revoke: not issued",
        "",
    ]
    migration = import_module("executions.migrations.0009_resource_error_codes")
    with tenant_scope(acme):
        now = timezone.now()
        for number, sentence in enumerate(sentences):
            ResourceRecord.objects.create(
                execution_id=placement.execution_id,
                epoch=1,
                resource_id=str(number),
                name="tmp",
                type="cache.user",
                definition="notes",
                opened_at=now,
                closed_at=now,
                ended="failed",
                error=sentence,
            )
        with connection.cursor() as cursor:
            cursor.execute(migration.SENTENCES_TO_CODES)
        found = list(ResourceRecord.objects.order_by("resource_id"))
    assert [one.error_text for one in found] == sentences
    assert [(one.error_code, one.error) for one in found] == [
        ("not_issued", ""),
        ("see_worker_log", ""),
        ("abandoned", "ann; bob"),
        ("", "revoke: not issued"),
        ("", ""),
    ]
