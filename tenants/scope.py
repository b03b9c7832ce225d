"""Entering a tenant or the platform: the only way in, for requests, tasks, commands and tests.

Timing: request-time and background-worker.
Model: sync; state lives on the thread's own connection.
Guarantee: inside the block every statement runs with the tenant's search_path and role.
Failure: raises before any statement if the tenant may not be entered; the scope before is always restored.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import cast

from django.db import connections

from foundation.errors import Conflict, IsolaneError
from tenants.names import platform_role, tenant_role, worker_platform_role
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.database_scope import LOGIN_SCOPE, NO_ROLE, DatabaseScope
from tenants.statuses import TenantStatus

ALIAS = "default"


class ScopeError(IsolaneError):
    """A programming error: a scope was entered from where it must not be."""

    code = "scope_error"


class TenantNotActive(Conflict):
    """The tenant exists but accepts no work now."""

    code = "tenant_not_active"


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantRef:
    """The value needed to enter a tenant; may be kept, since ids and schemas are never reused."""

    id: int
    schema: str
    status: TenantStatus


class Entered(AbstractContextManager[None]):
    """A scope for the length of a block; a class, since a generator takes several times as long."""

    __slots__ = ("_before", "_connection", "_scope")

    def __init__(self, connection: DatabaseWrapper, scope: DatabaseScope) -> None:
        self._connection = connection
        self._scope = scope

    def __enter__(self) -> None:
        self._before = self._connection.enter(self._scope)

    def __exit__(self, *_: object) -> None:
        self._connection.leave(self._before)


def tenant_scope(
    tenant: TenantRef, *, allowed: frozenset[TenantStatus] = TenantStatus.open()
) -> Entered:
    """Act as this tenant until the block ends."""
    if tenant.status not in allowed:
        raise TenantNotActive(
            f"Tenant {tenant.schema!r} is {tenant.status.label}; it accepts no work."
        )
    connection = _connection()
    role = tenant_role(connection.settings_dict["NAME"], tenant.id)
    if connection.wanted.role not in {NO_ROLE, role, _platform(connection)}:
        raise ScopeError(f"Tenant {tenant.schema!r} cannot be entered from inside another tenant.")
    return Entered(connection, DatabaseScope(search_path=f"{tenant.schema}, public", role=role))


def platform_scope() -> Entered:
    """Act as the platform until the block ends: admission, the tick, the admin; in workers with fewer rights."""
    connection = _connection()
    workers = worker_platform_role(connection.settings_dict["NAME"])
    return Entered(
        connection, DatabaseScope(search_path="public", role=_platform(connection), or_role=workers)
    )


def login_scope() -> Entered:
    """Leave every tenant until the block ends, to look tenants up or to enter others."""
    return Entered(_connection(), LOGIN_SCOPE)


def entered() -> DatabaseScope:
    """Return the scope that this thread is in."""
    return _connection().wanted


@contextmanager
def without_connection() -> Iterator[None]:
    """Give this thread's connection back until the block ends, for long work on a caller's behalf.

    The scope is entered again with the next statement. Inside the block every statement is refused.
    """
    connection = _connection()
    if connection.in_atomic_block:
        raise ScopeError("The connection cannot be given back inside a transaction.")
    connection.give_back()
    with connection.refusing_statements():
        yield


def give_back_connection() -> None:
    """Give this thread's connection back, if threads share them; close it if it has seen too many tenants."""
    _connection().give_back()


def keep_connections() -> None:
    """Let this thread share connections that keep to tenants; not for one that holds a lock of its session."""
    _connection().keep()


def close_kept_connections() -> None:
    """Close the connections that threads share and none uses."""
    if kept := _connection().kept:
        kept.close()


def _connection() -> DatabaseWrapper:
    return cast("DatabaseWrapper", connections[ALIAS])


def _platform(connection: DatabaseWrapper) -> str:
    return platform_role(connection.settings_dict["NAME"])
