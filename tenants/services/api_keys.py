"""Creating, checking and revoking API keys."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from foundation.errors import InvalidInput, NotFound, Unauthenticated
from tenants.caller import Caller, reach
from tenants.models import ApiKey
from tenants.names import check_blueprints, check_label
from tenants.roles import Role
from tenants.scope import TenantRef, login_scope, platform_scope
from tenants.services.audit import record

PREFIX = "isl_"
NAME_LENGTH = 100
HINT_LENGTH = len(PREFIX) + 6


def create_api_key(
    *,
    tenant: TenantRef,
    name: str,
    actor: str,
    role: Role = Role.OPERATOR,
    expires_at: datetime | None = None,
    blueprints: Sequence[str] | None = None,
) -> str:
    """Create a key and return it; it cannot be shown again."""
    if not name.strip():
        raise InvalidInput("name is empty; say what the key is for.", field="name")
    check_label(name, most=NAME_LENGTH)
    limit = check_blueprints(blueprints)
    key = PREFIX + secrets.token_urlsafe(32)
    with platform_scope(), transaction.atomic():
        ApiKey.objects.create(
            tenant_id=tenant.id,
            name=name,
            digest=digest_of(key),
            hint=key[:HINT_LENGTH],
            role=role,
            expires_at=expires_at,
            blueprints=limit,
        )
        record(
            action="api_key.create",
            actor=actor,
            tenant=tenant,
            subject=name,
            role=role,
            blueprints=limit,
        )
    return key


def revoke_api_key(*, tenant: TenantRef, hint: str, actor: str) -> None:
    """Revoke a key; it is invalid at once."""
    with platform_scope(), transaction.atomic():
        keys = ApiKey.objects.filter(tenant_id=tenant.id, hint=hint, revoked_at=None)
        if not keys.update(revoked_at=timezone.now()):
            raise NotFound(
                f"Tenant {tenant.schema!r} has no valid key that begins with {hint!r}.",
                field="hint",
            )
        record(action="api_key.revoke", actor=actor, tenant=tenant, subject=hint)


def caller_of_key(key: str) -> Caller:
    """Return the caller with this key; requests use tenants.logins.api_keys, which limits wrong ones."""
    caller = find_caller(key)
    if caller is None:
        raise invalid_key()
    return caller


def find_caller(key: str) -> Caller | None:
    """Return the caller with this key, if it is valid."""
    found = find_api_key(key)
    if found is None:
        return None
    return Caller(
        tenant=found.tenant.ref,
        role=Role(found.role),
        name=f"key:{found.hint}",
        blueprints=reach(found.blueprints),
    )


def invalid_key() -> Unauthenticated:
    """Return the same error for every invalid key: it reveals nothing about others."""
    return Unauthenticated("The API key is not valid: unknown, expired or revoked.")


def find_api_key(key: str) -> ApiKey | None:
    """Return the valid key that a caller sent, with its tenant."""
    if not key.startswith(PREFIX):
        return None
    with login_scope():
        found = (
            ApiKey.objects.select_related("tenant")
            .filter(digest=digest_of(key), revoked_at=None)
            .first()
        )
    if found is None or (found.expires_at is not None and found.expires_at <= timezone.now()):
        return None
    return found


def digest_of(key: str) -> str:
    """Return the stored form of a key."""
    return hashlib.sha256(key.encode()).hexdigest()
