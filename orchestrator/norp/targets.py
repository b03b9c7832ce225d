"""The targets of the tests in a live deployment: its run cache always, and a tenant's database.

Timing: request-time.
Model: sync.
Guarantee: idempotent; a definition that exists already is used.
Failure: bubble, as NotRun or the services' own errors: each names what is missing and the way out.
"""

from typing import Any

from django.conf import settings

from orchestrator.norp.observed_servers import observed_postgres, observed_run_cache
from orchestrator.norp.probe_runner import NotRun
from orchestrator.norp.probes import CACHE, ProbedDefinition
from orchestrator.norp.suite import Target
from resources.addresses import host_and_port, policy_from_settings, resolve
from resources.models import DefinitionScope, ResourceDefinition
from resources.selectors import definition
from resources.services import secrets
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import DefinitionExists, create_definition
from tenants.scope import TenantRef, tenant_scope

CACHE_DEFINITION = "norp-cache"
DATABASE = "database"
_DATABASE_PORT = 5432


def require_cache() -> None:
    """Raise NotRun without a run cache, which is always tested."""
    if not settings.CACHE_URL:
        raise NotRun(
            "There is no run cache to test with: set ISOLANE_CACHE_URL, here and for the workers."
        )


def cache_target(tenant: TenantRef, other: TenantRef | None, *, actor: str) -> Target:
    """Return the run cache as a target, by definitions of the tests' own."""
    return Target(
        name=CACHE,
        subject=_cache_of(tenant, actor),
        other=_cache_of(other, actor) if other else None,
        observe=lambda: observed_run_cache(settings.CACHE_URL),
    )


def database_target(tenant: TenantRef, name: str) -> Target:
    """Return a tenant's own database definition as a target, observed with the definition's login."""
    with tenant_scope(tenant):
        found = definition(name)
        _require(found, DATABASE)
        password = secrets.resolve(tenant.schema, found.secrets).get("password", "")
    login = _login(found, password)
    minted = " (minted)" if found.config.get("mint") else ""
    return Target(
        name=f"database {name}{minted}",
        subject=ProbedDefinition(tenant=tenant, definition=name, type=DATABASE),
        observe=lambda: observed_postgres(login),
    )


def _cache_of(tenant: TenantRef, actor: str) -> ProbedDefinition:
    cache = DefinitionInput(
        name=CACHE_DEFINITION, type=CACHE, scope=DefinitionScope.EXECUTION.value
    )
    try:
        create_definition(tenant, cache, actor=actor)
    except DefinitionExists:
        with tenant_scope(tenant):
            _require(definition(CACHE_DEFINITION), CACHE)
    return ProbedDefinition(tenant=tenant, definition=CACHE_DEFINITION, type=CACHE)


def _require(found: ResourceDefinition, type_: str) -> None:
    if found.type != type_:
        raise NotRun(f"The definition {found.name!r} is of type {found.type!r}, not {type_!r}.")
    if found.scope != DefinitionScope.EXECUTION.value:
        raise NotRun(
            f"The definition {found.name!r} has scope {found.scope!r}, so that no two nodes may share a handle:"
            f" set it ('isolane resources update {found.name} --scope execution'), or take another."
        )


def _login(found: ResourceDefinition, password: str) -> dict[str, Any]:
    config = found.config
    place = host_and_port(found.type, config)
    return {
        "host": config["host"],
        "port": config.get("port", _DATABASE_PORT),
        "dbname": config["dbname"],
        "user": config["user"],
        "password": password,
        "sslmode": config.get("sslmode", "prefer"),
        "address": resolve(*place, policy_from_settings()) if place else "",
    }
