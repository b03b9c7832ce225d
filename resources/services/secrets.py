"""Storing secrets, and resolving references to them for a run.

Timing: request-time (putting, deleting) and background-worker (resolving).
Model: sync; resolvers may read a file or query a server.
Guarantee: a value is stored encrypted only, and leaves by `resolve` alone.
Failure: bubble; an error names the secret or the reference, never a value.
"""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F

from foundation.errors import Conflict, InvalidInput
from foundation.keyring import UndecryptableError
from foundation.sealing import SealBroken
from resources.models import ResourceDefinition, Secret
from resources.resolvers.base import SecretUnavailable, refusal_of
from resources.resolvers.registry import parse, resolver_of
from resources.selectors import no_secret
from resources.services.names import check_name, is_name
from resources.services.sealing import seal, unseal
from tenants.scope import TenantRef, tenant_scope
from tenants.services.audit import record


class SecretInUse(Conflict):
    """A definition refers to the secret."""

    code = "secret_in_use"


def put_secret(tenant: TenantRef, name: str, value: str, *, actor: str) -> Secret:
    """Create a secret or replace its value; runs that begin from now on get the new one."""
    check_name(name)
    sealed = seal(tenant.schema, name, check_value(value))
    with tenant_scope(tenant), transaction.atomic():
        secret, is_new = Secret.objects.update_or_create(
            name=name,
            defaults={"sealed": sealed, "updated_by": actor, "version": F("version") + 1},
            create_defaults={"sealed": sealed, "updated_by": actor, "version": 1},
        )
        secret.refresh_from_db(fields=["version"])
        record(
            action="secret.create" if is_new else "secret.replace",
            actor=actor,
            tenant=tenant,
            subject=name,
            version=secret.version,
        )
    return secret


def delete_secret(tenant: TenantRef, name: str, *, actor: str) -> None:
    """Delete a secret that no definition refers to."""
    with tenant_scope(tenant), transaction.atomic():
        # Locked: writing a definition that refers to it locks it, too.
        secret = None
        if is_name(name):
            secret = Secret.objects.select_for_update().defer("sealed").filter(name=name).first()
        if secret is None:
            raise no_secret(name)
        if users := _definitions_with(name):
            raise SecretInUse(
                f"The secret {name!r} is used by the definition {users[0]!r}"
                f"{f' and {len(users) - 1} more' if users[1:] else ''}; change or delete that first.",
                field="name",
            )
        secret.delete()
        record(action="secret.delete", actor=actor, tenant=tenant, subject=name)


def check_value(value: object) -> str:
    """Return the value if it can be stored, granted and masked; the error does not repeat it."""
    if reason := refusal_of(value):
        raise InvalidInput(f"value cannot be a secret: {reason}.", field="value")
    return str(value)


def resolve(
    tenant: str, refs: Mapping[str, str], sealed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the values of these references, under the same names; for the worker, in the tenant entered.

    `tenant` is the schema's name. Stored ones are read with one query, unless the caller passes them as `sealed`.
    """
    parsed = {key: parse(reference) for key, reference in refs.items()}
    if sealed is None:
        sealed = _sealed({reference.path for reference in parsed.values() if not reference.scheme})
    values = {}
    for key, reference in parsed.items():
        if reference.scheme:
            values[key] = resolver_of(reference.scheme).resolve(tenant, reference.path)
        else:
            values[key] = _unsealed(tenant, reference.path, sealed.get(reference.path))
    return values


def _sealed(names: set[str]) -> dict[str, str]:
    found = Secret.objects.filter(name__in=names).values_list("name", "sealed")
    return {name: bytes(sealed).decode("ascii") for name, sealed in found}


def _unsealed(tenant: str, name: str, sealed: str | None) -> str:
    if sealed is None:
        raise SecretUnavailable(f"There is no secret {name!r}; 'isolane secrets set' makes one.")
    try:
        return unseal(tenant, name, sealed.encode())
    except (UndecryptableError, SealBroken) as error:
        raise SecretUnavailable(
            f"The secret {name!r} cannot be decrypted: {error.detail}"
        ) from None


def _definitions_with(name: str) -> list[str]:
    definitions = ResourceDefinition.objects.order_by("name").values_list("name", "secrets")
    return [
        definition
        for definition, references in definitions
        if any(_is_stored(reference, name) for reference in references.values())
    ]


def _is_stored(reference: str, name: str) -> bool:
    parsed = parse(reference)
    return not parsed.scheme and parsed.path == name
