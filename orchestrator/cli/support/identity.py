"""On whose behalf a command acts, and whether it may show a tenant's data."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from executions.selectors.executions import Reach
from foundation.errors import Forbidden, Unauthenticated
from orchestrator.cli.support.django import actor
from orchestrator.processes import CLIENTS_KEY
from tenants.caller import Caller
from tenants.roles import Permission
from tenants.scope import TenantRef
from tenants.selectors import tenant_by_schema
from tenants.services.api_keys import caller_of_key

HINT = (
    "Inputs, outputs, variables, questions, messages and logs are shown to those who may view executions of the"
    " blueprint: give an API key with --api-key or ISOLANE_API_KEY."
)
Command = TypeVar("Command", bound=Callable[..., Any])


class CommandIdentity:
    """The caller whose API key was given, with its permissions; without a key, an operator of the platform."""

    def __init__(self, tenant: str, api_key: str | None) -> None:
        self.tenant: TenantRef = tenant_by_schema(tenant)
        self._caller = _caller(self.tenant, api_key) if api_key else None

    @property
    def name(self) -> str:
        """Name for runs and the audit trail."""
        return self._caller.name if self._caller else actor()

    @property
    def reach(self) -> Reach:
        """Names of the visible blueprints; None means all."""
        return self._caller.blueprints if self._caller else None

    def sees_data(self, blueprint: str) -> bool:
        """Return True if the data of this blueprint's runs may be shown; never to an operator."""
        caller = self._caller
        return caller is not None and caller.may(Permission.EXECUTION_VIEW, blueprint)

    def require(self, permission: Permission, blueprint: str) -> None:
        """Raise Forbidden for a key without the permission; an operator has all of them."""
        if self._caller is not None:
            self._caller.require(permission, blueprint)

    def require_tenant_wide(self, permission: Permission) -> None:
        """Raise Forbidden for a key without the permission for the whole tenant; an operator has all of them."""
        if self._caller is not None:
            self._caller.require_tenant_wide(permission)

    def require_data(self, blueprint: str) -> None:
        """Raise Forbidden if the data of this blueprint's runs may not be shown."""
        if not self.sees_data(blueprint):
            raise Forbidden(HINT)


def tenant_options(command: Command) -> Command:
    """Add `--tenant` and `--api-key`."""
    return api_key_option(
        click.option("--tenant", required=True, help="Name of the tenant.")(command)
    )


def api_key_option(command: Command) -> Command:
    """Add `--api-key`."""
    return click.option(
        "--api-key",
        envvar=CLIENTS_KEY,
        show_envvar=True,
        metavar="KEY",
        help="Act with the permissions of this API key; needed to see inputs, outputs and logs of runs.",
    )(command)


def _caller(tenant: TenantRef, api_key: str) -> Caller:
    caller = caller_of_key(api_key)
    if caller.tenant.id != tenant.id:
        raise Unauthenticated(
            f"The API key is not one of tenant {tenant.schema!r}; see --api-key and ISOLANE_API_KEY."
        )
    return caller
