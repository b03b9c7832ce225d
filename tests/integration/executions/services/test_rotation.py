"""Rotation: all that is sealed, of every tenant, ends under the newest key, and nothing is lost on the way."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.db import models
from django.utils import timezone
from pytest_django import Settings

from executions.models import Execution, Step
from executions.models.sealing import seal, unseal
from executions.services.offboarding import advance_deletions
from executions.services.rotation import SEALED, rotate
from foundation.sealing import key_ring
from resources.ledger.models import IssuedCredential
from resources.models import Secret
from resources.services import rotation
from resources.services.rotation import Rotated, rotate_column
from resources.services.secrets import put_secret, resolve
from tenants.models import AuditEntry
from tenants.provisioner import work_off
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tenants.services.tenants import set_status
from tenants.statuses import TenantStatus
from tests.factories import make_boot, make_run, make_tenant

Server = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def sealed(acme: TenantRef, globex: TenantRef) -> dict[str, UUID]:
    """Two secrets and one run of each tenant in which everything that can be is sealed: six values each."""
    make_boot()
    runs = {}
    for tenant in (acme, globex):
        for name in ("one", "two"):
            put_secret(tenant, name, f"{tenant.schema}-{name}", actor="tests")
        run = runs[tenant.schema] = make_run(tenant, "s1")
        with tenant_scope(tenant):
            token = seal(run, {"of": tenant.schema})
            Execution.objects.filter(pk=run).update(sealed_inputs=token, sealed_variables=token)
            Step.objects.filter(execution_id=run).update(sealed_output=token)
            IssuedCredential.objects.create(
                tenant_id=tenant.id, execution_id=run, epoch=1, resource_type="database", definition="db",
                kind="database.role", remote_id="iso_1", data=token, issued_at=timezone.now(), sweep_at=timezone.now(),
            )  # fmt: skip
    return runs


def new_key_in_front(settings: Settings) -> list[str]:
    """Put a new key in front; returns it alone."""
    key = Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [key, *settings.ENCRYPTION_KEYS]
    return [key]


def total() -> Rotated:
    return sum((progress.result for progress in rotate(actor="tests")), Rotated())


def check_readable(tenant: TenantRef, run: UUID) -> None:
    with tenant_scope(tenant):
        assert resolve(tenant.schema, {"a": "one", "b": "two"}) == {
            "a": f"{tenant.schema}-one",
            "b": f"{tenant.schema}-two",
        }
        execution, step = Execution.objects.get(pk=run), Step.objects.get(execution_id=run)
        issued = IssuedCredential.objects.get(execution_id=run).data
        for token in (
            execution.sealed_inputs, execution.sealed_variables, step.sealed_output, issued,
        ):  # fmt: skip
            assert unseal(run, bytes(token or b"")) == {"of": tenant.schema}


def test_everything_of_every_tenant_opens_with_the_new_key_alone(
    sealed: dict[str, UUID], acme: TenantRef, globex: TenantRef, settings: Settings
) -> None:
    set_status(schema="globex", status=TenantStatus.SUSPENDED, actor="tests")
    newest = new_key_in_front(settings)
    seen = list(rotate(actor="tests"))
    assert [(p.tenant, p.result, p.done, p.total) for p in seen] == [
        ("acme", Rotated(rotated=6), 1, 2),
        ("globex", Rotated(rotated=6), 2, 2),
    ]
    settings.ENCRYPTION_KEYS = newest
    for tenant in (acme, globex):
        check_readable(tenant, sealed[tenant.schema])
    with platform_scope():
        entries = AuditEntry.objects.filter(action="secret.rotate").order_by("tenant_schema")
        assert [(entry.tenant_schema, entry.details["rotated"]) for entry in entries] == [
            ("acme", 6),
            ("globex", 6),
        ]


def test_a_second_rotation_finds_nothing_to_do(
    sealed: dict[str, UUID], acme: TenantRef, settings: Settings
) -> None:
    new_key_in_front(settings)
    with tenant_scope(acme):
        before = list(Secret.objects.order_by("name").values("version", "updated_at", "updated_by"))
    assert total() == Rotated(rotated=12)
    assert total() == Rotated(current=12)
    with tenant_scope(acme):
        after = list(Secret.objects.order_by("name").values("version", "updated_at", "updated_by"))
    assert before == after


def test_more_than_a_batch_is_rotated(
    sealed: dict[str, UUID], acme: TenantRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "BATCH", 2)
    for number in range(5):
        put_secret(acme, f"more-{number}", "value-value", actor="tests")
    new_key_in_front(settings)
    with tenant_scope(acme):
        assert rotate_column(Secret, "sealed") == Rotated(rotated=7)


def test_what_is_written_meanwhile_is_not_overwritten(
    sealed: dict[str, UUID], acme: TenantRef, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_key_in_front(settings)
    real = key_ring

    def interrupted() -> Any:
        monkeypatch.setattr(rotation, "key_ring", real)
        put_secret(acme, "one", "written-meanwhile", actor="tests")
        return real()

    monkeypatch.setattr(rotation, "key_ring", interrupted)
    result = total()
    assert result == Rotated(rotated=11, changed=1)
    assert not result.is_complete
    with tenant_scope(acme):
        assert resolve("acme", {"a": "one"}) == {"a": "written-meanwhile"}
    assert total() == Rotated(current=12)


def test_what_no_key_opens_is_counted_left_and_stops_nothing(
    sealed: dict[str, UUID], acme: TenantRef, globex: TenantRef, settings: Settings
) -> None:
    with tenant_scope(acme):
        Secret.objects.filter(name="one").update(sealed=b"nonsense")
    new_key_in_front(settings)
    result = total()
    assert result == Rotated(rotated=11, unreadable=1)
    assert not result.is_complete
    with tenant_scope(acme):
        assert bytes(Secret.objects.get(name="one").sealed) == b"nonsense"


def test_a_tenant_dropped_meanwhile_is_passed_over(
    sealed: dict[str, UUID], acme: TenantRef, settings: Settings, superuser: Server
) -> None:
    make_tenant("initech")
    new_key_in_front(settings)
    steps = rotate(actor="tests")
    assert [next(steps).tenant, next(steps).tenant] == ["acme", "globex"]
    set_status(schema="initech", status=TenantStatus.DELETING, actor="tests")
    advance_deletions()
    work_off()
    assert [progress.result for progress in steps] == [Rotated()]


def test_every_sealed_column_of_a_tenant_is_known() -> None:
    """A table that somebody adds later must not be forgotten."""
    from django.apps import apps

    binary = {
        (model, field.name)
        for app in ("executions", "placement", "resources", "ledger")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.BinaryField)
    }
    assert set(SEALED) == binary
