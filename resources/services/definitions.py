"""Creating, changing and deleting a tenant's definitions."""

from collections.abc import Callable, Sequence

from django.db import IntegrityError, transaction

from foundation.errors import Conflict, InvalidInput
from resources.models import ResourceDefinition, Secret
from resources.selectors import no_definition
from resources.services.definition_rules import DefinitionInput, check_definition_input
from resources.services.names import is_name
from tenants.scope import TenantRef, tenant_scope, without_connection
from tenants.services.audit import record

UsersOf = Callable[
    [str], Sequence[str]
]  # the blueprints of the tenant entered that use a definition


class DefinitionExists(Conflict):
    """The name is taken."""

    code = "definition_exists"


class DefinitionInUse(Conflict):
    """A blueprint uses the definition."""

    code = "definition_in_use"


def create_definition(
    tenant: TenantRef, given: DefinitionInput, *, actor: str
) -> ResourceDefinition:
    """Store a definition that meets the rules of its type and whose secrets exist."""
    stored = _checked(given)
    try:
        with tenant_scope(tenant), transaction.atomic():
            _lock_secrets(stored)
            made = ResourceDefinition.objects.create(
                name=given.name,
                type=given.type,
                config=dict(given.config),
                secrets=dict(given.secrets),
                scope=given.scope,
                created_by=actor,
                updated_by=actor,
            )
            _record("create", tenant, made, actor)
    except IntegrityError:
        raise DefinitionExists(
            f"There is a definition {given.name!r} already; change that one, or choose another name.",
            field="name",
        ) from None
    return made


def update_definition(
    tenant: TenantRef, given: DefinitionInput, *, actor: str
) -> ResourceDefinition:
    """Replace all of a definition but its type; runs that begin from now on get the new one."""
    stored = _checked(given)
    with tenant_scope(tenant), transaction.atomic():
        found = _locked(given.name)
        if given.type != found.type:
            raise InvalidInput(
                f"type: {given.name!r} is of type {found.type!r}, which never changes; make another definition.",
                field="type",
            )
        _lock_secrets(stored)
        found.config, found.secrets = dict(given.config), dict(given.secrets)
        found.scope, found.updated_by = given.scope, actor
        found.save()
        _record("change", tenant, found, actor)
    return found


def delete_definition(tenant: TenantRef, name: str, *, actor: str, users_of: UsersOf) -> None:
    """Delete a definition, unless the newest version of a blueprint uses it."""
    with tenant_scope(tenant), transaction.atomic():
        found = _locked(name)
        if users := users_of(name):
            raise DefinitionInUse(
                f"The definition {name!r} is used by the blueprint {users[0]!r}"
                f"{f' and {len(users) - 1} more' if users[1:] else ''}; publish a version without it first.",
                field="name",
            )
        _record("delete", tenant, found, actor)
        found.delete()


def unrouted(name: str) -> Sequence[str]:
    """Stand in for `users_of` until a route sets it."""
    raise NotImplementedError(f"no users_of was set to find the blueprints that use {name!r}")


def _checked(given: DefinitionInput) -> frozenset[str]:
    with without_connection():  # the names of the platform's own servers are looked up
        return check_definition_input(given)


def _locked(name: str) -> ResourceDefinition:
    found = None
    if is_name(name):
        found = ResourceDefinition.objects.select_for_update().filter(name=name).first()
    if found is None:
        raise no_definition(name)
    return found


def _lock_secrets(names: frozenset[str]) -> None:
    """Refuse references to secrets that do not exist; those that exist are locked until this is committed."""
    locked = Secret.objects.select_for_update(no_key=True).filter(name__in=names).order_by("name")
    if missing := sorted(names.difference(locked.values_list("name", flat=True))):
        raise InvalidInput(
            f"secrets: there is no secret {missing[0]!r}; store it first ('isolane secrets set {missing[0]}').",
            field="secrets",
        )


def _record(verb: str, tenant: TenantRef, definition: ResourceDefinition, actor: str) -> None:
    record(
        action=f"resource.{verb}",
        actor=actor,
        tenant=tenant,
        subject=definition.name,
        type=definition.type,
        secrets=definition.secrets,
        scope=definition.scope,
    )
